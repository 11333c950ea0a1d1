import type { DuckDatabase } from '../../platform/db/duckdb.ts'

export type CacheReleaseOptions = {
  /** Memory limit of the engine. */
  readonly memoryBytes: number
  /** Memory that it may keep while no query runs. */
  readonly idleBytes: number
  /** Whether a query runs now. */
  readonly isQueried: () => boolean
}

/**
 * The engine caches every page of its file that was written or read until its memory limit, so an idle store would grow to the limit within a day.
 * Lowering the limit for a moment makes it release pages; rows that are not yet in the file stay in memory.
 */
export async function createCacheRelease(
  database: DuckDatabase,
  { memoryBytes, idleBytes, isQueried }: CacheReleaseOptions,
): Promise<() => Promise<void>> {
  // Two connections, because both statements start before the first is awaited: no query can begin in between.
  const lower = await (await database.connect()).prepareHere(limitOf(idleBytes))
  const restore = await (await database.connect()).prepareHere(limitOf(memoryBytes))
  return async () => {
    if (isQueried()) return
    // The engine refuses a limit below the memory in use: then there is nothing to release.
    await Promise.allSettled([lower(), restore()])
    // A thread of the engine may take the first statement and finish it after the second.
    await restore()
  }
}

function limitOf(bytes: number): string {
  return `SET memory_limit = '${mebibytes(bytes)}'`
}

/** A size in the notation of the engine's settings. */
export function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024)}MiB`
}
