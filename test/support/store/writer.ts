import { writeSync } from 'node:fs'
import { type OpenStoreOptions, openStore } from '../../../src/access/store/open.ts'
import { addCustomer, STORE_DEPS } from './engines.ts'

/** The program's only argument. */
export type WriterTask = {
  readonly options: OpenStoreOptions
  readonly name: string
  /** The number of customers to add before the program ends. */
  readonly count: number
}

/** Adds customers `NAME-0`, `NAME-1` … one change each, and prints the number of each when the change is acknowledged. */
if (import.meta.main) {
  const { options, name, count } = JSON.parse(process.argv[2] ?? '') as WriterTask
  await using store = await openStore(options, STORE_DEPS)
  for (let number = 0; number < count; number++) {
    await addCustomer(store, `${name}-${number}`)
    writeSync(1, `${number}\n`)
  }
}
