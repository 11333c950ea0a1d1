import { statfs as statFileSystem } from 'node:fs/promises'
import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import type { Lifecycle } from '../process/lifecycle.ts'
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts'

/** What Node's `statfs` returns, as far as it is used. */
export type FileSystemSpace = {
  readonly bsize: number
  readonly blocks: number
  readonly bavail: number
  readonly files: number
  readonly ffree: number
}

export type DiskWatchDeps = {
  readonly clock: Clock
  readonly registry: MetricsRegistry
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  readonly statfs?: (path: string) => Promise<FileSystemSpace>
}

const CHECK_MS = 2000
/** Full: less than this is free, and on a small file system less than one percent. Nothing useful fits there. */
const FULL_BYTES = 16 * 1024 * 1024
const FULL_SHARE = 0.01

/** Registers the metrics of the disk. The figures are those of the last check. */
export function diskMetrics(registry: MetricsRegistry, read: () => { free: number; size: number }): void {
  registry.gauge(
    'sluice_process_disk_free_bytes',
    'Free space on the file system of the state folder; NaN if unknown.',
    { read: () => read().free, merge: 'min' },
  )
  registry.gauge('sluice_process_disk_size_bytes', 'Size of the file system of the state folder; NaN if unknown.', {
    read: () => read().size,
    merge: 'max',
  })
}

/** Watches the file system of the state folder and reports it while it is full, before a write has to fail. */
export async function startDiskWatch(folder: string, deps: DiskWatchDeps): Promise<AsyncDisposable> {
  const { clock, registry, lifecycle, statfs = statFileSystem } = deps
  let figures = { free: Number.NaN, size: Number.NaN }
  diskMetrics(registry, () => figures)
  let checking: Promise<void> | undefined

  async function check(): Promise<void> {
    try {
      const { bsize, blocks, bavail, files, ffree } = await statfs(folder)
      figures = { free: bavail * bsize, size: blocks * bsize }
      const isFull = figures.free < Math.min(FULL_BYTES, figures.size * FULL_SHARE)
      // File systems without a fixed inode table report zero.
      const hasNoInodes = files > 0 && ffree === 0
      if (isFull || hasNoInodes)
        lifecycle.degraded(
          'disk-space',
          `no ${isFull ? 'space' : 'inode'} is left on the file system of ${folder}: customers, the sender's journal and the indexer's tables cannot be written; calls and queries continue`,
        )
      else lifecycle.recovered('disk-space')
    } catch (error) {
      figures = { free: Number.NaN, size: Number.NaN }
      lifecycle.degraded('disk-space', `the file system of ${folder} cannot be checked: ${messageOf(error)}`)
    }
  }

  const start = (): void => {
    checking ??= check().finally(() => {
      checking = undefined
    })
  }
  start()
  await checking
  const timer = clock.setRepeating(CHECK_MS, start)
  timer.unref?.()
  return {
    async [Symbol.asyncDispose]() {
      timer.cancel()
      await checking
    },
  }
}
