import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'

/** The listener that customers download: what it prints while no shred arrives. */

const LISTENER = join(import.meta.dirname, '../../examples/shreds/shred-listen.mjs')

test('a listener without shreds states what to do, and reports the challenge that it sends back', async () => {
  const child = spawn(process.execPath, [LISTENER, '0', '--host', '127.0.0.1', '--hint-seconds', '0.2'])
  try {
    let printed = ''
    child.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    await until('it names the causes', () => /no shreds so far.*sluice shred verify/s.test(printed), 20_000)
    const port = Number(/listening on UDP port (\d+)/.exec(printed)?.[1])
    const operator = createSocket('udp4')
    operator.send('sluice-challenge 1 ABCD\n', port, '127.0.0.1')
    const [echo] = (await once(operator, 'message')) as [Buffer]
    operator.close()
    assert.equal(echo.toString(), 'sluice-challenge 1 ABCD\n')
    await until('it reports the challenge', () => printed.includes('challenge of the operator sent back'), 20_000)
  } finally {
    child.kill('SIGKILL')
  }
})
