import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { CLI } from '../support/cli/run.ts'
import { blockPackets, sendAll } from '../support/shreds/rig.ts'

for (const [output, header] of [
  ['table', /^SLOT +DATA +CODING/],
  ['csv', /^slot,parent/],
] as const) {
  test(`${output}: prints the header once`, async () => {
    const child = spawn(process.execPath, [CLI, 'shred', 'listen', '0', '--host', '127.0.0.1', '-o', output], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [out, errors] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    const ended = once(child, 'close')
    const sender = createSocket('udp4')
    try {
      await until('it listens', () => /listening on UDP/.test(errors), 20_000)
      const port = Number(/127\.0\.0\.1:(\d+)/.exec(errors)?.[1])
      for (const slot of [700, 701, 702]) {
        await sendAll(sender, blockPackets(slot), port)
        await until(`slot ${slot} is printed`, () => new RegExp(`^${slot}\\b`, 'm').test(out), 20_000)
      }
    } finally {
      sender.close()
      child.kill('SIGINT')
      await ended
    }
    const lines = out.split('\n')
    assert.match(lines[0] ?? '', header)
    assert.equal(lines.filter((line) => header.test(line)).length, 1, out)
    assert.deepEqual(
      lines.filter((line) => /^70\d\b/.test(line)).map((line) => line.slice(0, 3)),
      ['700', '701', '702'],
    )
  })
}
