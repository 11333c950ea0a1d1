import { writeSync } from 'node:fs'
import { type OpenStoreOptions, openStore } from '../../src/access/store/open.ts'
import { addCustomer, STORE_DEPS } from './store-engines.ts'

/** What the program is told, as its only argument. */
export type WriterTask = {
  readonly options: OpenStoreOptions
  readonly name: string
  /** How many customers to add; the program is killed before it gets there, or ends by itself. */
  readonly count: number
}

/** Adds customers `NAME-0`, `NAME-1` … one change each, and writes the number of each to its output when the change is acknowledged. */
if (import.meta.main) {
  const { options, name, count } = JSON.parse(process.argv[2] ?? '') as WriterTask
  await using store = await openStore(options, STORE_DEPS)
  for (let number = 0; number < count; number++) {
    await addCustomer(store, `${name}-${number}`)
    writeSync(1, `${number}\n`)
  }
}
