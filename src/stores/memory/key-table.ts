/*
 * The keys of one rule and their state, under a seeded hash: no text is kept. The table is a directory of
 * segments by the leading bits of the hash (extendible hashing): a segment that is full splits in two, all
 * others stay as they are, so growing to any size never moves more than 16,384 keys at once. A JavaScript
 * Map would throw at 2^24 keys and stall for a second long before.
 *
 * The table is bounded. At `maxKeys` room is made among the keys nearest to the new one: what has expired
 * goes first, then the key of least usage, and only where all of them are exhausted the one that is free
 * soonest. Expired keys are swept by a hand that walks round, a few slots for each new key and more when
 * the gate ticks; no call ever visits all keys.
 */
import { blankMeasure, type Algorithm, type KeyState, type Measure } from '../../core/algorithm.js'
import { EntryPool } from '../../core/entry-pool.js'
import type { HashOut } from '../../core/hash.js'
import type { CompiledRule } from '../../core/rule.js'
import { RuleTime } from '../../core/rule-time.js'
import type { KeyCounts } from '../store.js'
import { noSlot, Segment } from './segment.js'

const slotCountAtStart = 16
/** Up to this a segment doubles; then it grows by a quarter of it, and splits at twice as many. */
const slotCountDoubled = 8_192
const slotCountMax = 2 * slotCountDoubled
const slotCountStep = slotCountDoubled / 4
/** Keys looked at when room is made: at least so many, and at most, in search of one that is not exhausted. */
const neighbourCountMin = 16
const neighbourCountMax = 128
const sweptSlotsMax = 50_000
const sweptSlotsByClaim = 4

export class KeyTable {
  /** Where the key of the last `locate` or `claim` has its state; `blank` where it is not in the table. */
  state: KeyState
  slot = 0
  /** All zeros, for every key that the table does not hold: a look leaves no trace. */
  readonly blank: KeyState
  /** The rule's time. */
  readonly time: RuleTime
  /** Between judging and settling: what the rule measured. One attempt asks a rule once. */
  readonly measure: Measure = blankMeasure()
  readonly #algorithm: Algorithm
  readonly #entries: EntryPool | null
  #directory: Segment[]
  #segments: Segment[]
  /** 32 less the bits by which the directory is chosen. */
  #shift = 31
  #tracked = 0
  #handSegment = 0
  #handSlot = 0
  #evictedExpired = 0
  #evictedLive = 0
  readonly #scratch: Measure = blankMeasure()

  constructor(rule: CompiledRule) {
    const { keepsEntries } = rule.algorithm
    this.#algorithm = rule.algorithm
    this.#entries = keepsEntries ? new EntryPool() : null
    this.time = new RuleTime(rule.windowMs)
    const first = new Segment(slotCountAtStart, rule.algorithm, 0, this.#entries)
    this.#segments = [first]
    this.#directory = [first, first]
    this.blank = new Segment(slotCountAtStart, rule.algorithm, 0, this.#entries)
    this.state = this.blank
  }

  /** Finds a key's state, see `state` and `slot`, and goes over to its time. */
  locate({ low, high }: HashOut): void {
    const segment = this.#directory[high >>> this.#shift] as Segment
    const slot = segment.find(low, high)
    if (slot === noSlot) {
      this.state = this.blank
      this.slot = 0
    } else {
      this.state = segment
      this.slot = slot
    }
    this.#algorithm.align(this.state, this.slot, this.time)
  }

  /** Makes a place, all zeros, for a key that is not in the table. */
  claim(hash: HashOut, rule: CompiledRule): void {
    this.#sweepSlots(sweptSlotsByClaim, rule)
    // Twice, so that a table whose `maxKeys` was lowered shrinks with each new key.
    for (let turn = 0; turn < 2 && this.#tracked >= rule.maxKeys; turn++) {
      this.#makeRoom(hash, rule)
    }
    this.#makeEntryRoom(hash, rule)
    const { low, high } = hash
    let segment = this.#directory[high >>> this.#shift] as Segment
    let slot = segment.insert(low, high)
    while (slot === noSlot) {
      this.#growSegment(segment)
      segment = this.#directory[high >>> this.#shift] as Segment
      slot = segment.insert(low, high)
    }
    this.#tracked++
    this.state = segment
    this.slot = slot
    // Sweeping and making room have looked at other keys.
    this.#algorithm.align(segment, slot, this.time)
  }

  /** Makes sure that a log can take one more entry. */
  reserveEntry(hash: HashOut, rule: CompiledRule): void {
    if (!this.#isLogFull(rule)) return
    this.#makeEntryRoom(hash, rule)
    this.locate(hash)
  }

  forget({ low, high }: HashOut): void {
    const segment = this.#directory[high >>> this.#shift] as Segment
    const slot = segment.find(low, high)
    if (slot !== noSlot) this.#remove(segment, slot)
  }

  /** Frees expired keys: enough slots that the hand comes round within a window, bounded for each call. */
  sweep(rule: CompiledRule, elapsedMs: number): void {
    const slotCount = this.#segments.reduce((sum, segment) => sum + segment.slotCount, 0)
    const share = Math.min(1, elapsedMs / rule.windowMs)
    this.#sweepSlots(Math.min(Math.ceil(slotCount * share), sweptSlotsMax), rule)
  }

  counts(): KeyCounts {
    return {
      tracked: this.#tracked,
      evictedExpired: this.#evictedExpired,
      evictedLive: this.#evictedLive,
    }
  }

  #sweepSlots(slotCount: number, rule: CompiledRule): void {
    for (let step = 0; step < slotCount; step++) {
      const segment = this.#segments[this.#handSegment] as Segment
      const slot = this.#handSlot
      if (segment.lowOf(slot) !== 0 && this.#isExpired(segment, slot, rule)) {
        this.#remove(segment, slot)
        this.#evictedExpired++
      }
      this.#moveHand(segment)
    }
  }

  #moveHand(segment: Segment): void {
    this.#handSlot++
    if (this.#handSlot < segment.slotCount) return
    this.#handSlot = 0
    this.#handSegment = (this.#handSegment + 1) % this.#segments.length
  }

  #isExpired(segment: Segment, slot: number, rule: CompiledRule): boolean {
    this.#algorithm.align(segment, slot, this.time)
    return this.#algorithm.isExpired(segment, slot, rule, this.time)
  }

  #remove(segment: Segment, slot: number): void {
    this.#algorithm.release(segment, slot)
    segment.remove(slot)
    this.#tracked--
  }

  /** Logs are bounded by their entries too; the key that is asked about is not the one to go. */
  #makeEntryRoom(hash: HashOut, rule: CompiledRule): void {
    for (let turn = 0; turn < neighbourCountMax && this.#isLogFull(rule); turn++) {
      if (!this.#makeRoom(hash, rule)) return
    }
  }

  /** By the rule as it is now: `maxEntries` may have been changed while it runs. */
  #isLogFull({ maxEntries }: CompiledRule): boolean {
    return this.#entries !== null && this.#entries.count >= maxEntries
  }

  /** Frees one key near the given one; false where there is none. */
  #makeRoom(hash: HashOut, rule: CompiledRule): boolean {
    const segment = this.#directory[hash.high >>> this.#shift] as Segment
    const victim = this.#victimNear(segment, hash, rule)
    if (victim !== noSlot) {
      this.#evict(segment, victim, rule)
      return true
    }
    // The key's own segment holds no other: where it is the only key there is nothing to free.
    const other = this.#segments.find((one) => one !== segment && one.used > 0)
    if (other === undefined) return false
    const slot = other.firstUsed()
    this.#evict(other, slot, rule)
    return true
  }

  #evict(segment: Segment, slot: number, rule: CompiledRule): void {
    if (this.#isExpired(segment, slot, rule)) this.#evictedExpired++
    else this.#evictedLive++
    this.#remove(segment, slot)
  }

  /** The slot to free: from the key's own two buckets on, until enough neighbours have been seen. */
  #victimNear(segment: Segment, { low, high }: HashOut, rule: CompiledRule): number {
    const [first, second] = segment.bucketsOf(low, high)
    const { slotCount } = segment
    let victim = noSlot
    let leastUsage = Infinity
    let soonestMs = Infinity
    let seen = 0
    // The second bucket comes first, so that the walk goes on from the end of the first.
    const start = second === first ? first : second
    for (let step = 0; step < slotCount + 8 && seen < neighbourCountMax; step++) {
      const slot = step < 8 ? start + step : (first + step - 8) % slotCount
      const ownLow = segment.lowOf(slot)
      if (ownLow === 0 || (ownLow === low && segment.highOf(slot) === high)) continue
      seen++
      if (this.#isExpired(segment, slot, rule)) return slot
      const measure = this.#measureOf(segment, slot, rule)
      const usage = measure.allowed ? measure.usage : Infinity
      const isSooner = usage === leastUsage && measure.retryAfterMs < soonestMs
      if (victim === noSlot || usage < leastUsage || isSooner) {
        victim = slot
        leastUsage = usage
        soonestMs = measure.retryAfterMs
      }
      if (seen >= neighbourCountMin && leastUsage < Infinity) break
    }
    return victim
  }

  #measureOf(segment: Segment, slot: number, rule: CompiledRule): Measure {
    const measure = this.#scratch
    this.#algorithm.align(segment, slot, this.time)
    this.#algorithm.judge(segment, slot, rule, this.time, 1, measure)
    this.#algorithm.settle(segment, slot, rule, this.time, 1, false, !measure.allowed, measure)
    return measure
  }

  /** Enlarges a segment, or splits one that has grown enough: so all stay between 70 and 92 % full. */
  #growSegment(segment: Segment): void {
    const { slotCount, depth } = segment
    const isSplit = slotCount >= slotCountMax
    if (isSplit && depth === 32 - this.#shift) this.#doubleDirectory()
    let partSlotCount = largerThan(isSplit ? slotCountDoubled : slotCount)
    let parts = this.#parts(segment, isSplit, partSlotCount)
    // A key may have no room in its part all the same, with a chance of next to nothing.
    while (parts === null) {
      partSlotCount = largerThan(partSlotCount)
      parts = this.#parts(segment, isSplit, partSlotCount)
    }
    this.#replace(segment, parts)
  }

  /** The keys of a segment in one larger one, or in two by their next bit; null where one does not fit. */
  #parts(segment: Segment, isSplit: boolean, slotCount: number): Segment[] | null {
    const depth = isSplit ? segment.depth + 1 : segment.depth
    const make = () => new Segment(slotCount, this.#algorithm, depth, this.#entries)
    const parts = isSplit ? [make(), make()] : [make()]
    for (let slot = 0; slot < segment.slotCount; slot++) {
      if (segment.lowOf(slot) === 0) continue
      const side = isSplit ? (segment.highOf(slot) >>> (32 - depth)) & 1 : 0
      if (!(parts[side] as Segment).adopt(segment, slot)) return null
    }
    return parts
  }

  #replace(segment: Segment, parts: readonly Segment[]): void {
    const index = this.#segments.indexOf(segment)
    this.#segments.splice(index, 1, ...parts)
    if (this.#handSegment > index) this.#handSegment += parts.length - 1
    else if (this.#handSegment === index) this.#handSlot = 0
    for (let entry = 0; entry < this.#directory.length; entry++) {
      if (this.#directory[entry] !== segment) continue
      const bits = entry >>> (31 - this.#shift - segment.depth)
      this.#directory[entry] = (parts.length === 1 ? parts[0] : parts[bits & 1]) as Segment
    }
  }

  #doubleDirectory(): void {
    this.#directory = this.#directory.flatMap((segment) => [segment, segment])
    this.#shift--
  }
}

/** The next size of a segment. */
function largerThan(slotCount: number): number {
  return slotCount < slotCountDoubled ? 2 * slotCount : slotCount + slotCountStep
}
