/*
 * The primary's side: which gates there are in which workers, who belongs together, who asks whom. It never
 * looks into a report but to add it up.
 *
 * Bounded: gates of a worker, and gates that no worker has any more.
 */
import { GateGroup, type Member } from './gate-group.js'
import type { PrimaryMessage, WorkerMessage } from './messages.js'

/** A worker as far as the collector knows it. */
export interface Peer {
  readonly id: number
  send(message: PrimaryMessage): void
}

interface Gate {
  readonly member: Member
  readonly group: GateGroup
}

/** More gates in a worker answer for themselves: they are made by mistake. */
const gatesMax = 64
const groupsMax = 256

export class Collector {
  /** By worker, then by the gate's own name. */
  readonly #gates = new Map<number, Map<string, Gate>>()
  /** By identity and place among the gates of a worker that have the same one. */
  readonly #groups = new Map<string, GateGroup>()

  receive(peer: Peer, message: WorkerMessage): void {
    if (message.type === 'open') {
      this.#open(peer, message.gate, message.identity)
      return
    }
    const gate = this.#gates.get(peer.id)?.get(message.gate)
    if (gate === undefined) return
    const { member, group } = gate
    if (message.type === 'report') {
      group.report(member, message.lasting, message.passing)
    } else if (message.type === 'ask') {
      const { gate: name, question } = message
      group.ask((merged) => peer.send({ type: 'answer', gate: name, question, merged }))
    } else {
      this.#gates.get(peer.id)?.delete(message.gate)
      group.remove(member, message.lasting)
    }
  }

  /** A worker has ended, or can no longer be reached. */
  gone(workerId: number): void {
    const gates = this.#gates.get(workerId)
    this.#gates.delete(workerId)
    for (const { member, group } of gates?.values() ?? []) group.remove(member)
  }

  #open(peer: Peer, name: string, identity: string): void {
    const gates = this.#gates.get(peer.id) ?? new Map<string, Gate>()
    if (gates.size >= gatesMax) return
    this.#gates.set(peer.id, gates)
    const group = this.#groupFor(identity, peer.id)
    const member: Member = {
      workerId: peer.id,
      tell: () => peer.send({ type: 'tell', gate: name }),
    }
    group.add(member)
    gates.set(name, { member, group })
  }

  /** The first group of that identity in which the worker has no gate: the second of two equal ones is second everywhere. */
  #groupFor(identity: string, workerId: number): GateGroup {
    for (let place = 0; ; place++) {
      const name = `${identity} ${place}`
      const group = this.#groups.get(name) ?? this.#newGroup(name)
      if (!group.hasWorker(workerId)) return group
    }
  }

  #newGroup(name: string): GateGroup {
    for (const [known, { isEmpty }] of this.#groups) {
      if (this.#groups.size < groupsMax) break
      if (isEmpty) this.#groups.delete(known)
    }
    const group = new GateGroup()
    this.#groups.set(name, group)
    return group
  }
}
