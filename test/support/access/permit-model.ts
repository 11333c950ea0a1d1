import assert from 'node:assert/strict'
import { PERMIT_SCRIPT } from '../../../src/access/quota/permit-script.ts'
import { PERMIT_KINDS } from '../../../src/access/quota/permit-table.ts'
import { LIVE_SCRIPT } from '../../../src/access/quota/redis-script.ts'
import type { RedisReply, RedisScript } from '../../../src/platform/db/redis.ts'

type Held = { endMs: number; isWhole: boolean; readonly counts: Map<string, number[]> }

/** What the scripts of heartbeats and permits do, in memory and on a given time. */
export function createPermitModel() {
  const seenAt = new Map<string, number>()
  const permits = new Map<string, Held>()
  let sinceMs: number | undefined

  /** The permits of a process, those whose time is over excluded. */
  function heldBy(process: string, nowMs: number): Held | undefined {
    const held = permits.get(process)
    if (held !== undefined && nowMs >= held.endMs) permits.delete(process)
    return permits.get(process)
  }

  function create(process: string, endMs: number): Held {
    const held = { endMs, isWhole: false, counts: new Map<string, number[]>() }
    permits.set(process, held)
    return held
  }

  function heartbeat(nowMs: number, [process = '', silence = '', what = '']: readonly string[]): number[] {
    const silenceMs = Number(silence)
    let isNew = 0
    if (what === 'leave') {
      seenAt.delete(process)
      permits.delete(process)
    } else {
      seenAt.set(process, nowMs)
      const held = heldBy(process, nowMs) ?? create(process, 0)
      isNew = held.isWhole ? 0 : 1
      held.isWhole = true
      held.endMs = nowMs + silenceMs
    }
    for (const [other, atMs] of seenAt) if (atMs < nowMs - silenceMs) seenAt.delete(other)
    sinceMs = Math.min(nowMs, sinceMs ?? nowMs)
    return [seenAt.size, isNew, nowMs - sinceMs]
  }

  function publish(nowMs: number, [process = '', silence = '', , ...pairs]: readonly string[]): number[] {
    const silenceMs = Number(silence)
    const sums: number[] = []
    for (let at = 0; at < pairs.length; at += 2) {
      const [id = '', counts = ''] = pairs.slice(at, at + 2)
      if (counts === '') heldBy(process, nowMs)?.counts.delete(id)
      else {
        const held = heldBy(process, nowMs) ?? create(process, 0)
        held.counts.set(id, counts.split(' ').map(Number))
        held.endMs = nowMs + silenceMs
      }
      const others = [...seenAt.keys()].filter((other) => other !== process)
      for (let kind = 0; kind < PERMIT_KINDS; kind++)
        sums.push(others.reduce((sum, other) => sum + (heldBy(other, nowMs)?.counts.get(id)?.[kind] ?? 0), 0))
    }
    return sums
  }

  return {
    run(script: RedisScript, args: readonly string[], nowMs: number): RedisReply {
      if (script === LIVE_SCRIPT) return heartbeat(nowMs, args)
      assert.equal(script, PERMIT_SCRIPT)
      return publish(nowMs, args)
    },
    /** As after a restart without persistence. */
    clear(): void {
      seenAt.clear()
      permits.clear()
      sinceMs = undefined
    },
  }
}
