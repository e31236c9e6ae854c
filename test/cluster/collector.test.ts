/*
 * The primary's side by itself, with a clock that is set by hand: who is asked, who is waited for, and for
 * how long.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Collector, type Peer } from '../../src/cluster/collector.js'
import { patienceMs } from '../../src/cluster/gate-group.js'
import { primaryMessage, workerMessage, type PrimaryMessage } from '../../src/cluster/messages.js'
import type { Lasting, Merged, Passing } from '../../src/cluster/report.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const lasting = (value: number): Lasting => ({
  metrics: [
    { name: 'm', help: '', type: 'counter', aggregate: 'sum', series: [{ labels: {}, value }] },
  ],
  tally: null,
  failures: 0,
  lost: 0,
  evictedKeys: [],
})

const passing: Passing = {
  metrics: [],
  keySpace: '',
  rules: [],
  unsaved: [],
  lastFlushAtMs: null,
  pending: 0,
}

const valueOf = ({ metrics }: Merged) => metrics[0]?.series[0]?.value ?? 0

/** A worker with a gate, as the collector sees it. */
class FakeWorker implements Peer {
  readonly sent: PrimaryMessage[] = []
  readonly #collector: Collector
  readonly id: number

  constructor(collector: Collector, id: number, gates: readonly string[] = ['g'], identity = 'i') {
    this.#collector = collector
    this.id = id
    for (const gate of gates) collector.receive(this, { type: 'open', gate, identity })
  }

  send(message: PrimaryMessage): void {
    this.sent.push(message)
  }

  ask(question = 1, gate = 'g'): void {
    this.#collector.receive(this, { type: 'ask', gate, question })
  }

  /** What it counted, as an answer to a `tell`. */
  tell(value: number, gate = 'g'): void {
    this.#collector.receive(this, { type: 'report', gate, lasting: lasting(value), passing })
  }

  tick(value: number): void {
    this.#collector.receive(this, {
      type: 'report',
      gate: 'g',
      lasting: lasting(value),
      passing: null,
    })
  }

  close(value: number): void {
    this.#collector.receive(this, { type: 'close', gate: 'g', lasting: lasting(value) })
  }

  get tellCount(): number {
    return this.sent.filter(({ type }) => type === 'tell').length
  }

  get answers(): (number | string)[] {
    return this.sent.flatMap((each) => (each.type === 'answer' ? [valueOf(each.merged)] : []))
  }
}

function workers(count: number) {
  const collector = new Collector()
  const all = Array.from({ length: count }, (_, index) => new FakeWorker(collector, index + 1))
  return { collector, all: all as [FakeWorker, FakeWorker, FakeWorker] }
}

describe('a round', () => {
  it('asks all workers, and answers when the last has told', () => {
    const { all } = workers(3)
    all[0].ask()
    expect(all.map(({ tellCount }) => tellCount)).toEqual([1, 1, 1])
    all[0].tell(1)
    all[1].tell(2)
    expect(all[0].answers).toEqual([])
    all[2].tell(3)
    expect(all[0].answers).toEqual([6])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is not for who asks while it runs: another follows for all of them', () => {
    const { all } = workers(2)
    all[0].ask(1)
    all[0].tell(1)
    all[1].ask(2)
    all[0].ask(3)
    expect(all[1].tellCount).toBe(1)
    all[1].tell(1)
    expect([all[0].answers, all[1].answers]).toEqual([[2], []])
    // The first has counted more since it told.
    all[0].tell(5)
    all[1].tell(1)
    expect([all[0].answers, all[1].answers]).toEqual([[2, 6], [6]])
    expect(all.slice(0, 2).map(({ tellCount }) => tellCount)).toEqual([2, 2])
  })

  it('waits half a second for a worker that hangs, once, and its latest report stands for it', () => {
    const { all } = workers(2)
    all[0].ask()
    all[0].tell(1)
    all[1].tell(10)
    all[1].tick(11)
    all[0].ask()
    all[0].tell(2)
    vi.advanceTimersByTime(patienceMs - 1)
    expect(all[0].answers).toEqual([11])
    vi.advanceTimersByTime(1)
    expect(all[0].answers).toEqual([11, 13])
    // It is not asked again before it speaks, so nothing piles up on its way.
    all[0].ask()
    all[0].tell(3)
    expect(all[0].answers).toEqual([11, 13, 14])
    expect(all[1].tellCount).toBe(2)
    all[1].tell(20)
    all[0].ask()
    all[0].tell(3)
    all[1].tell(21)
    expect(all[0].answers.at(-1)).toBe(24)
  })

  it('does not wait for one that ends meanwhile', () => {
    const { all, collector } = workers(2)
    all[1].tick(7)
    all[0].ask()
    all[0].tell(1)
    collector.gone(2)
    expect(all[0].answers).toEqual([8])
  })
})

describe('what ended workers counted', () => {
  it('stays, by their last report', () => {
    const { all, collector } = workers(3)
    all[1].tick(7)
    all[2].close(100)
    collector.gone(2)
    collector.gone(3)
    all[0].ask()
    all[0].tell(1)
    expect(all[0].answers).toEqual([108])
    // A message that comes late is nobody's.
    all[1].tick(9)
    all[0].ask()
    all[0].tell(1)
    expect(all[0].answers).toEqual([108, 108])
  })

  it('stays where a gate is closed and another made in its place', () => {
    const { all, collector } = workers(1)
    all[0].close(5)
    collector.receive(all[0], { type: 'open', gate: 'h', identity: 'i' })
    all[0].ask(1, 'h')
    all[0].tell(1, 'h')
    expect(all[0].answers).toEqual([6])
  })
})

describe('gates', () => {
  it('belong together by their identity, and by their place among equal ones of a worker', () => {
    const collector = new Collector()
    const one = new FakeWorker(collector, 1, ['a', 'b'])
    const two = new FakeWorker(collector, 2, ['c', 'd'])
    const other = new FakeWorker(collector, 3, ['e'], 'another')
    one.ask(1, 'b')
    expect(one.sent).toEqual([{ type: 'tell', gate: 'b' }])
    expect(two.sent).toEqual([{ type: 'tell', gate: 'd' }])
    expect(other.sent).toEqual([])
  })

  it('beyond 64 of a worker are not taken in', () => {
    const collector = new Collector()
    const names = Array.from({ length: 70 }, (_, index) => `g${index}`)
    const worker = new FakeWorker(collector, 1, names)
    worker.ask(1, 'g63')
    worker.ask(1, 'g64')
    expect(worker.sent).toEqual([{ type: 'tell', gate: 'g63' }])
  })
})

describe('messages', () => {
  it.each([
    undefined,
    null,
    'text',
    1,
    {},
    { type: 'open', gate: 'g', identity: 'i' },
    { tallygate: 2, type: 'open', gate: 'g', identity: 'i' },
    { tallygate: 1, type: 'constructor', gate: 'g' },
    { tallygate: 1, type: 'tell', gate: 1 },
  ])('of others are passed over: %j', (value) => {
    expect(workerMessage(value)).toBeNull()
    expect(primaryMessage(value)).toBeNull()
  })

  it('of ours are known by their sender', () => {
    const open = { tallygate: 1, type: 'open', gate: 'g', identity: 'i' }
    expect(workerMessage(open)).toBe(open)
    expect(primaryMessage(open)).toBeNull()
  })
})
