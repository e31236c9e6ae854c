/*
 * A gate in a small Express app on a real socket, with a clock set by hand: what most tests of the edge need.
 */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Express } from 'express'
import { onTestFinished } from 'vitest'
import { createGate, type GateParts } from '../../src/gate/gate.js'
import type { GateOptions } from '../../src/gate/options.js'
import { manualClock, type ManualClock } from '../../src/testing/index.js'

/** A multiple of a minute, an hour and 100 s, so that windows begin at it. */
export const startMs = 1_760_000_400_000

export interface Hosted {
  readonly gate: GateParts
  readonly clock: ManualClock
  readonly server: Server
  readonly url: string
  /** Sends a request; a body is read and dropped where nobody wants it. */
  readonly ask: (path?: string, init?: RequestInit) => Promise<Answer>
}

export interface Guarded extends Hosted {
  readonly app: Express
}

export interface Answer {
  status: number
  headers: Headers
  text: string
}

type Options = Omit<GateOptions, 'clock'> & { clock?: ManualClock }

/**
 * @param build adds to the app before it listens; without it the gate guards `GET /`, which answers ok.
 */
export async function guarded(
  options: Options,
  build: (app: Express, gate: GateParts) => void = guardEverything,
): Promise<Guarded> {
  const app = express()
  const hosted = await host(options, (gate) => {
    build(app, gate)
    return app
  })
  return { ...hosted, app }
}

/** A gate in whatever answers requests: another version of Express, or a function over Node's own. */
export async function host(
  options: Options,
  build: (gate: GateParts) => RequestListener,
): Promise<Hosted> {
  const clock = options.clock ?? manualClock(startMs)
  const gate = createGate({ ...options, clock })
  const server = createServer(build(gate)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await gate.close()
  })
  const ask = async (path = '/', init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(url + path, { redirect: 'manual', ...init })
    const { status, headers } = response
    return { status, headers, text: await response.text() }
  }
  return { gate, clock, server, url, ask }
}

function guardEverything(app: Express, gate: GateParts): void {
  app.use(gate.middleware)
  app.get('/', (_request, response) => void response.send('ok'))
}

/** The statuses of `count` requests, one after the other. */
export async function statuses(
  count: number,
  ask: (index: number) => Promise<Answer>,
): Promise<number[]> {
  const seen: number[] = []
  for (let index = 0; index < count; index++) seen.push((await ask(index)).status)
  return seen
}

export function countOf(seen: readonly number[], status: number): number {
  return seen.filter((one) => one === status).length
}
