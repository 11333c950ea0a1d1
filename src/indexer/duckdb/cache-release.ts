import type { DuckDatabase } from '../../platform/db/duckdb.ts'

export type CacheReleaseOptions = {
  /** What the engine may use. */
  readonly memoryBytes: number
  /** What it may go on holding when nobody asks it anything. */
  readonly restBytes: number
  /** Whether somebody asks it something right now. */
  readonly isAsked: () => boolean
}

/**
 * The engine keeps every page of its file that was written or read until its memory is full, also when nobody will read it again: a store at rest
 * would grow for a day, to its limit. A limit that is lower for a moment makes it give pages back; rows that are in no file yet stay where they are.
 */
export async function createCacheRelease(
  database: DuckDatabase,
  { memoryBytes, restBytes, isAsked }: CacheReleaseOptions,
): Promise<() => Promise<void>> {
  // Two connections, because both statements are run before the first is waited for: no query can begin in between.
  const lower = await (await database.connect()).prepareHere(limitOf(restBytes))
  const restore = await (await database.connect()).prepareHere(limitOf(memoryBytes))
  return async () => {
    if (isAsked()) return
    // Refused while more than that is in use: then there is nothing to give back.
    await Promise.allSettled([lower(), restore()])
    // A thread of the engine may take the first statement and finish it after the second.
    await restore()
  }
}

function limitOf(bytes: number): string {
  return `SET memory_limit = '${mebibytes(bytes)}'`
}

/** As the engine's settings want it. */
export function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024)}MiB`
}
