import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { ENGINES, type Engines, startEngines } from '../../../test/support/store/engines.ts'
import type { SmallDiskReport, SmallDiskTask } from '../../../test/support/store/on-small-disk.ts'

const PROGRAM = new URL('../../../test/support/store/on-small-disk.ts', import.meta.url).pathname

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

for (const engine of ENGINES) {
  test(`on a full disk a change is refused and leaves nothing behind: ${engine}`, async () => {
    await using bench = await engines.bench(engine)
    const task = JSON.stringify({ options: bench.options, folder: bench.folder } satisfies SmallDiskTask)
    // A mount in a private namespace, which ends with this process and its children; without root, a user namespace.
    const isolate = process.getuid?.() === 0 ? '-m' : '-Urm'
    const script = 'mount -t tmpfs -o size=12m small "$1" && exec "$2" "$3" "$4"'
    const { stdout } = await promisify(execFile)('unshare', [
      ...[isolate, 'sh', '-c', script, 'sh', bench.folder],
      ...[process.execPath, PROGRAM, task],
    ])
    const report = JSON.parse(stdout) as SmallDiskReport
    assert.deepEqual(report.wrong, [])
    assert.deepEqual(Object.keys(report.outcomes).toSorted(), ['disk-full', 'done'], JSON.stringify(report.outcomes))
    assert.ok(
      (report.outcomes['disk-full'] ?? 0) > 0 && (report.outcomes['done'] ?? 0) > 1,
      JSON.stringify(report.outcomes),
    )
    assert.equal(report.present, report.acknowledged)
  })
}
