/*
 * The gates of all workers that are one to the outside: the latest report of each, what is kept of those
 * that have ended, and the rounds in which they are asked. One round at a time; who asks during one gets the
 * next, because what a client saw after the round began may not be in it.
 *
 * A worker that does not answer is waited for once, for half a second: until it speaks again its latest
 * report stands for it, so that neither a counter falls nor an answer is late a second time.
 */
import { keep, mergeReports } from './merge.js'
import type { Lasting, Merged, Passing, Report } from './report.js'

export const patienceMs = 500

/** One gate in one worker. */
export interface Member {
  readonly workerId: number
  /** Asks it for a report. */
  tell(): void
}

interface Known {
  report: Report | null
  /** Whether it was asked and has not answered yet. */
  isAsked: boolean
}

type Asker = (merged: Merged) => void

interface Round {
  readonly askers: readonly Asker[]
  readonly awaited: Set<Member>
  readonly timer: NodeJS.Timeout
}

export class GateGroup {
  readonly #members = new Map<Member, Known>()
  #kept: Lasting | null = null
  #waiting: Asker[] = []
  #round: Round | null = null

  get isEmpty(): boolean {
    return this.#members.size === 0
  }

  /** Whether a worker takes part already. */
  hasWorker(workerId: number): boolean {
    return [...this.#members.keys()].some((member) => member.workerId === workerId)
  }

  add(member: Member): void {
    this.#members.set(member, { report: null, isAsked: false })
  }

  /** Keeps what is to last of a member that has ended. */
  remove(member: Member, last?: Lasting): void {
    const lasting = last ?? this.#members.get(member)?.report?.lasting
    this.#members.delete(member)
    if (lasting !== undefined) this.#kept = keep(this.#kept, lasting)
    this.#answered(member)
  }

  /** @param passing null where it was not asked for: then what was known of it still holds. */
  report(member: Member, lasting: Lasting, passing: Passing | null): void {
    const known = this.#members.get(member)
    if (known === undefined) return
    known.report = { lasting, passing: passing ?? known.report?.passing ?? null }
    if (passing === null) return
    known.isAsked = false
    this.#answered(member)
  }

  /** Answers once all live workers have reported, or after half a second. */
  ask(asker: Asker): void {
    this.#waiting.push(asker)
    if (this.#round === null) this.#begin()
  }

  #begin(): void {
    const awaited = new Set<Member>()
    const timer = setTimeout(() => this.#end(), patienceMs).unref()
    this.#round = { askers: this.#waiting, awaited, timer }
    this.#waiting = []
    for (const [member, known] of this.#members) {
      if (known.isAsked) continue
      known.isAsked = true
      awaited.add(member)
      member.tell()
    }
    if (awaited.size === 0) this.#end()
  }

  #answered(member: Member): void {
    const round = this.#round
    if (round === null) return
    round.awaited.delete(member)
    if (round.awaited.size === 0) this.#end()
  }

  #end(): void {
    const round = this.#round
    if (round === null) return
    clearTimeout(round.timer)
    this.#round = null
    const merged = mergeReports(this.#reports(), this.#kept)
    for (const asker of round.askers) asker(merged)
    if (this.#waiting.length > 0) this.#begin()
  }

  /** In the order of the workers, so that an answer does not depend on who was first. */
  #reports(): Report[] {
    return [...this.#members]
      .toSorted(([a], [b]) => a.workerId - b.workerId)
      .flatMap(([, { report }]) => report ?? [])
  }
}
