import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import type { GrantedSchedule, ThreadSchedule } from './thread-schedule.ts'

/** In a process of its own, with these words before it; also the scheduling policy of the kernel: field 41 of stat (proc(5)). */
function scheduled(schedule: ThreadSchedule, before: readonly string[] = []): GrantedSchedule & { policy: number } {
  const code = `
    import { readFileSync } from 'node:fs'
    const { scheduleThisThread } = await import(${JSON.stringify(new URL('./thread-schedule.ts', import.meta.url).href)})
    const granted = await scheduleThisThread(${JSON.stringify(schedule)}, 2)
    const policy = Number(readFileSync('/proc/thread-self/stat', 'latin1').split(') ')[1].split(' ')[38])
    console.log(JSON.stringify({ ...granted, policy }))`
  const words = [...before, process.execPath, '--input-type=module', '-e', code]
  const { stdout, stderr } = spawnSync(words[0] as string, words.slice(1), { encoding: 'utf8' })
  assert.ok(stdout, stderr)
  return JSON.parse(stdout) as GrantedSchedule & { policy: number }
}

const isRoot = process.getuid?.() === 0

test('sets SCHED_FIFO and the processor of the calling thread', { skip: !isRoot && 'needs the privilege' }, () => {
  const granted = scheduled({ priority: 'realtime', core: 0 })
  assert.deepEqual(granted, { priority: 'realtime', core: 0, refused: [], policy: 1 })
})

test('what is not permitted is refused by name, and the thread runs on', { skip: !isRoot && 'needs setpriv' }, () => {
  // The same user, who can read this folder, without its privileges.
  const without = ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--clear-groups']
  const { priority, core, refused, policy } = scheduled({ priority: 'realtime', core: 1023 }, without)
  assert.deepEqual([priority, core, policy, refused.length], ['normal', null, 0, 3])
  assert.match(refused.join('\n'), /^priority realtime: not permitted\npriority raised: .*\ncore 1023: error 22/)
})
