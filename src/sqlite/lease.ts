/*
 * Which of several processes may write what only one can: it holds a lease, and renews it. It is over when it
 * was given back, when its time is up, or at once when its process is dead, which can be told of a process on
 * the same host. Several containers may call themselves by one name and number their processes each by
 * itself, so a host here is a name and, on Linux, a space of process numbers.
 */
import { randomUUID } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { processStartMs } from '../core/clock.js'

/** Several times as long as is between two renewals. */
export const leaseMs = 15_000

export interface LeaseHolder {
  /** Unlike any other, in this process too. */
  readonly id: string
  readonly host: string
  readonly pid: number
  /** Tells the process from one that had its number before. */
  readonly processStartMs: number
}

/** As it was left by whoever has it. */
export interface Lease {
  /** The holder's id; null where it was given back. */
  readonly holder: string | null
  readonly host: string
  readonly pid: number
  readonly processStartMs: number
  readonly leaseUntilMs: number
}

/** Another holder each time. */
export function newHolder(): LeaseHolder {
  return { id: randomUUID(), host: hostName(), pid: process.pid, processStartMs }
}

/**
 * Whether a lease can be had.
 *
 * @param isFirst whether the taker has only begun. Then a lease that has its own process number is of a dead
 * process. Later that might be one that took it from the taker, in a thread of the same process, and the two
 * would take it from each other for ever.
 */
export function isFree(lease: Lease, taker: LeaseHolder, isFirst: boolean, nowMs: number): boolean {
  if (lease.holder === null || lease.holder === taker.id) return true
  // One that ends later than any that is given was given before the clock was set back.
  if (lease.leaseUntilMs <= nowMs || lease.leaseUntilMs > nowMs + 2 * leaseMs) return true
  if (lease.host !== taker.host) return false
  if (lease.pid !== taker.pid) return !isAlive(lease.pid)
  return isFirst && lease.processStartMs !== taker.processStartMs
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Any other error says that it is there, and not ours.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function hostName(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}
