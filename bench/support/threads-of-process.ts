import { readdirSync, readFileSync } from 'node:fs'

/** What the threads of one name have used so far: microseconds of CPU, and how often they slept until something woke them. */
export type ThreadUse = { readonly cpuMicros: number; readonly wakeUps: number }

/** The threads of a process by name, from proc(5). A thread that has ended is missing. */
export function threadsOf(pid: number): Map<string, ThreadUse> {
  const all = new Map<string, ThreadUse>()
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`
    let name: string
    let use: ThreadUse
    try {
      name = readFileSync(`${folder}/comm`, 'latin1').trim()
      const status = readFileSync(`${folder}/status`, 'latin1')
      use = {
        cpuMicros: Number(readFileSync(`${folder}/schedstat`, 'latin1').split(' ')[0]) / 1000,
        wakeUps: Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]),
      }
    } catch {
      // It has ended since the folder was read.
      continue
    }
    const same = all.get(name) ?? { cpuMicros: 0, wakeUps: 0 }
    all.set(name, { cpuMicros: same.cpuMicros + use.cpuMicros, wakeUps: same.wakeUps + use.wakeUps })
  }
  return all
}

/** What each used between the two readings, for one of `count` items, the busiest first. */
export function usePerItem(
  before: ReadonlyMap<string, ThreadUse>,
  after: ReadonlyMap<string, ThreadUse>,
  count: number,
): { readonly thread: string; readonly cpuMicros: number; readonly wakeUps: number }[] {
  return [...after]
    .map(([thread, { cpuMicros, wakeUps }]) => {
      const first = before.get(thread) ?? { cpuMicros: 0, wakeUps: 0 }
      return {
        thread,
        cpuMicros: Math.round((cpuMicros - first.cpuMicros) / count),
        wakeUps: Math.round(((wakeUps - first.wakeUps) * 100) / count) / 100,
      }
    })
    .filter(({ cpuMicros }) => cpuMicros > 0)
    .sort((a, b) => b.cpuMicros - a.cpuMicros)
}
