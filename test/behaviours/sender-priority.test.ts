import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sluice } from '../support/cli/run.ts'
import { startSenderNode, startSenderProcess } from '../support/sender/process.ts'

const RAISED = -9
const isRoot = process.getuid?.() === 0

/** Priorities of the threads of a process: field 19 of stat (proc(5)). */
function niceValues(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [, rest = ''] = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1').split(') ')
    return Number(rest.split(' ')[16])
  })
}

test('a raised sender has its event loop and its checking threads before other work, and status says so; a normal one has none', {
  skip: !isRoot && 'needs the privilege',
}, async () => {
  await using node = await startSenderNode()
  for (const [priority, least, most, note] of [
    ['raised', 2, Number.POSITIVE_INFINITY, 'priority raised'],
    ['normal', 0, 0, undefined],
  ] as const) {
    await using sender = await startSenderProcess(node.url, `priority = "${priority}"\ncheckThreads = 1\n`)
    const raised = niceValues(sender.served.child.pid as number).filter((nice) => nice === RAISED).length
    assert.ok(raised >= least && raised <= most, `${priority}: ${raised} threads`)
    const { stdout } = await sluice(['status', '--state', join(sender.folder, 'state'), '--json'])
    const { services } = JSON.parse(stdout) as { services: { name: string; note?: string }[] }
    assert.equal(services.find(({ name }) => name === 'sender')?.note, note)
  }
})
