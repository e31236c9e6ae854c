/*
 * Who sends: a population of simulated clients with addresses of their own, from the ranges set aside for
 * documentation, and habits. Three are heavy, so that limits of one client and of one session are passed
 * before the limit of all is; the others share the rest, ever less of it. Each has a network of its own, as a limiter counts an IPv6 client by its /64.
 */
import { Client, type Asked, type Habit } from './client.js'
import type { Moment } from './pace.js'
import type { Random } from './random.js'

export const clientCount = 40

/** Shares of all requests; the three together leave a third to everybody else.
 * With the limits that ship, more of the first two and `global` is seldom passed, less and `ip` is. */
const heavy: readonly { habit: Habit; weight: number }[] = [
  { habit: 'poller', weight: 0.42 },
  { habit: 'regular', weight: 0.21 },
  { habit: 'collector', weight: 0.06 },
]

const lightHabits: readonly Habit[] = ['reader', 'poller', 'reader', 'collector']

/** Clients from here on are never the source of a burst, and send few requests. */
const lightFrom = 10

export class Population {
  readonly clients: readonly Client[]
  readonly #random: Random
  #burstCount = 0

  constructor(random: Random) {
    this.#random = random
    const weights = weightsOf(clientCount)
    // The population begins at a random host, so that runs of other seeds are other people.
    const firstHost = Math.floor(random() * 200)
    this.clients = weights.map((weight, rank) => {
      const habit = heavy[rank]?.habit ?? lightHabits[rank % lightHabits.length] ?? 'reader'
      return new Client({
        address: addressOf(rank, firstHost),
        habit,
        weight,
        isLight: rank >= lightFrom,
      })
    })
  }

  /** Whose turn it is: by weight. */
  pick(): Client {
    let left = this.#random()
    return this.clients.find(({ weight }) => (left -= weight) < 0) ?? this.#at(0)
  }

  /** Who asks for what at a moment, drawn one by one as each is sent: what a client asks depends on answers. */
  *requests({ requestCount, isBurst }: Moment): Generator<{ client: Client; asked: Asked }> {
    const client = isBurst ? this.#pickForBurst() : this.pick()
    const kindDraw = this.#random()
    for (let count = 0; count < requestCount; count++) {
      const detailDraw = this.#random()
      const asked = isBurst
        ? client.askInBurst(kindDraw, detailDraw)
        : client.ask(kindDraw, detailDraw)
      yield { client, asked }
    }
  }

  /** In turn the two heaviest, so that they surely pass their limits, and one that is not light. */
  #pickForBurst(): Client {
    const drawn = 1 + Math.floor(this.#random() * (lightFrom - 1))
    const turn = this.#burstCount++ % 3
    return this.#at(turn === 2 ? drawn : turn)
  }

  #at(rank: number): Client {
    const client = this.clients[rank]
    if (client === undefined) throw new RangeError(`There is no client ${rank}`)
    return client
  }
}

/** The light ones by Zipf's law; all weights add up to 1. */
function weightsOf(count: number): number[] {
  const heavyWeights = heavy.map(({ weight }) => weight)
  const left = 1 - heavyWeights.reduce((sum, weight) => sum + weight, 0)
  const raw = Array.from({ length: count - heavy.length }, (_, rank) => 1 / (rank + 3))
  const rawSum = raw.reduce((sum, weight) => sum + weight, 0)
  return [...heavyWeights, ...raw.map((weight) => (weight / rawSum) * left)]
}

function addressOf(rank: number, firstHost: number): string {
  const host = 1 + ((firstHost + rank) % 250)
  if (rank % 4 === 3) return `2001:db8:0:${host.toString(16)}::${(rank + 1).toString(16)}`
  return rank % 2 === 0 ? `203.0.113.${host}` : `198.51.100.${host}`
}
