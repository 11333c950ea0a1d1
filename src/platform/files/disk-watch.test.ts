import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createMetricsRegistry } from '../telemetry/metrics-registry.ts'
import { type FileSystemSpace, startDiskWatch } from './disk-watch.ts'

const GIB = 1024 ** 3
const ROOMY: FileSystemSpace = { bsize: 4096, blocks: (100 * GIB) / 4096, bavail: GIB / 4096, files: 1000, ffree: 10 }

test('a full file system is reported by its folder within seconds, with what it stops, and its recovery too', async () => {
  const clock = createManualClock()
  using registry = createMetricsRegistry()
  let reason: string | undefined
  const lifecycle = {
    degraded: (part: string, why: string) => void (reason = `${part}: ${why}`),
    recovered: () => void (reason = undefined),
  }
  let space: FileSystemSpace | Error = ROOMY
  const statfs = async () => {
    if (space instanceof Error) throw space
    return space
  }
  await using _watch = await startDiskWatch('/srv/state', { clock, registry, lifecycle, statfs })
  assert.equal(reason, undefined)
  assert.equal(registry.value('sluice_process_disk_free_bytes'), GIB)
  assert.equal(registry.value('sluice_process_disk_size_bytes'), 100 * GIB)

  space = { ...ROOMY, bavail: 10 }
  await clock.advanceAsync(2000)
  assert.match(
    reason ?? '',
    /^disk-space: no space is left on the file system of \/srv\/state: .*tables.*calls .*continue/,
  )
  space = ROOMY
  await clock.advanceAsync(2000)
  assert.equal(reason, undefined)
  space = { ...ROOMY, ffree: 0 }
  await clock.advanceAsync(2000)
  assert.match(reason ?? '', /no inode is left/)
  // A small file system is not full while one percent is free.
  space = { ...ROOMY, files: 0, ffree: 0, blocks: 4096, bavail: 100 }
  await clock.advanceAsync(2000)
  assert.equal(reason, undefined)
  space = new Error('EIO')
  await clock.advanceAsync(2000)
  assert.match(reason ?? '', /cannot be checked: EIO/)
  assert.ok(Number.isNaN(registry.value('sluice_process_disk_free_bytes')))
})
