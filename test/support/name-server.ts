/*
 * A name server that says what a test gave it, over UDP on this machine, and nothing to names that are to
 * be met with silence. As much of the protocol as that takes: one question, A and AAAA.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

const types = { A: 1, AAAA: 28 } as const
const outcomes = { ok: 0, serverFailed: 2, unknownName: 3 } as const

export interface Zone {
  readonly A?: readonly string[] | 'serverFailed' | 'silence'
  /** Addresses in full, eight groups of four digits. */
  readonly AAAA?: readonly string[] | 'serverFailed' | 'silence'
}

export interface NameServer {
  /** Such as 127.0.0.1:5353. */
  readonly address: string
  readonly asked: string[]
}

export async function nameServer(zones: Readonly<Record<string, Zone>>): Promise<NameServer> {
  const asked: string[] = []
  const socket = createSocket('udp4', (message, { port, address }) => {
    const { name, type, end } = questionOf(message)
    asked.push(`${name} ${type}`)
    const zone = zones[name]
    const found = zone?.[type] ?? []
    if (found === 'silence') return
    const isFailed = found === 'serverFailed'
    const records = isFailed ? [] : found.map((text) => record(type, text))
    const outcome = zone === undefined ? 'unknownName' : isFailed ? 'serverFailed' : 'ok'
    const head = Buffer.from(message.subarray(0, 12))
    head.writeUInt16BE(0x8180 | outcomes[outcome], 2)
    head.writeUInt16BE(records.length, 6)
    head.writeUInt32BE(0, 8)
    socket.send(Buffer.concat([head, message.subarray(12, end), ...records]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return { address: `127.0.0.1:${socket.address().port}`, asked }
}

function questionOf(message: Buffer): { name: string; type: 'A' | 'AAAA'; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const type = message.readUInt16BE(at + 1) === types.A ? 'A' : 'AAAA'
  return { name: labels.join('.'), type, end: at + 5 }
}

/** Names the question's name by a pointer to it. */
function record(type: 'A' | 'AAAA', text: string): Buffer {
  const data =
    type === 'A'
      ? Buffer.from(text.split('.').map(Number))
      : Buffer.from(text.replaceAll(':', ''), 'hex')
  const head = Buffer.from([0xc0, 12, 0, types[type], 0, 1, 0, 0, 0, 60, 0, data.length])
  return Buffer.concat([head, data])
}
