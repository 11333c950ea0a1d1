import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Recordings of real nodes: too large for the repository, they are beside the checkout where they are used. */
export const recordedDataFolder = join(import.meta.dirname, '../../shared/data')

/** The one reason for which a test may be skipped; `scripts/check.ts` accepts no other. */
export const RECORDED_DATA_SKIP = 'recorded data (../shared/data) is not beside the checkout'

/** For `test(name, { skip: skipWithoutRecordedData() }, …)`. */
export function skipWithoutRecordedData(): string | false {
  return existsSync(recordedDataFolder) ? false : RECORDED_DATA_SKIP
}
