import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cli/run.ts'
import { memoryKinds, treeMemory } from '../support/machine/tree-memory.ts'
import { serve } from '../support/process/serve.ts'

const LAUNCHER = join(import.meta.dirname, '../../sluice')
/** All services with the embedded chain. A start takes about 420 MB, or 480 where it compiles; `bench/memory.ts` measures the hours after it. */
const START_BYTES_MAX = 560e6
const TRIAL = {
  SLUICE_EXECUTION__ENABLED: 'true',
  SLUICE_INDEXER__ENABLED: 'true',
  SLUICE_LOCALNET__ENABLED: 'true',
}

test('all services with the embedded chain start within their memory', async () => {
  await using folder = await temporaryFolder()
  await using process = serve({ cwd: folder.path, program: LAUNCHER, args: ['--log', 'json'], env: TRIAL })
  await process.line(/"msg":"started"/)
  const processes = treeMemory(process.child.pid as number)
  assert.deepEqual(processes.map(({ name }) => name).toSorted(), ['cli/main.ts', 'engine/child.ts', 'store/child.ts'])
  const total = processes.reduce((sum, { pssBytes }) => sum + pssBytes, 0)
  assert.ok(total < START_BYTES_MAX, `${Math.round(total / 1e6)} MB: ${JSON.stringify(processes)}`)
  for (const { pid, pssBytes } of processes) {
    const byKind = Object.values(memoryKinds(pid)).reduce((sum, bytes) => sum + bytes, 0)
    // Two readings of a process at work.
    assert.ok(Math.abs(byKind / pssBytes - 1) < 0.2, `${byKind} bytes by kind, ${pssBytes} altogether`)
  }
  assert.equal(await process.stop(), 0)
})
