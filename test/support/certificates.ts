/*
 * Self-signed certificates for tests, made on the spot: Node makes keys and signatures, and the few lines
 * of DER around them are here. So no private key lies in the repository, and none runs out.
 */
import { generateKeyPairSync, sign } from 'node:crypto'

export interface Certified {
  /** Both in PEM; the certificate is its own authority. */
  readonly key: string
  readonly cert: string
}

interface Wanted {
  names?: readonly string[]
  /** IPv4 addresses. */
  addresses?: readonly string[]
  /** As UTCTime, such as 491231235959Z. */
  notAfter?: string
}

export function certificate({
  names = [],
  addresses = [],
  notAfter = '491231235959Z',
}: Wanted): Certified {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
  const name = sequence(set(sequence(oid('550403'), der(0x0c, Buffer.from('tallygate test')))))
  const alternatives = sequence(
    ...names.map((text) => der(0x82, Buffer.from(text))),
    ...addresses.map((text) => der(0x87, Buffer.from(text.split('.').map(Number)))),
  )
  const isAuthority = sequence(der(0x01, Buffer.from([0xff])))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from(notAfter))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(extension(oid('551d11'), alternatives), extension(oid('551d13'), isAuthority)),
    ),
  )
  const signature = sign('sha256', body, privateKey)
  const whole = sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${whole.toString('base64')}\n-----END CERTIFICATE-----\n`,
  }
}

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: readonly Buffer[]) => der(0x30, ...parts)
const set = (...parts: readonly Buffer[]) => der(0x31, ...parts)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const extension = (id: Buffer, value: Buffer) => sequence(id, der(0x04, value))
