import { closeSync, ftruncateSync, openSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { verifyAudit } from '../../../src/access/audit/verify.ts'
import { type OpenStoreOptions, openStore } from '../../../src/access/store/open.ts'
import { isServiceError } from '../../../src/core/error.ts'
import { CONTEXT, customer, STORE_DEPS } from './engines.ts'

/** The program's only argument: a store whose state folder is on a small disk. */
export type SmallDiskTask = { readonly options: OpenStoreOptions; readonly folder: string }

/** The outcome, printed as JSON. */
export type SmallDiskReport = {
  /** The number of changes made, and of refused ones by code. */
  outcomes: Record<string, number>
  /** All failed checks. */
  wrong: string[]
  acknowledged: number
  present: number
}

const BLOCK_BYTES = 4096
const ROUNDS = 40

/** Makes changes while the disk has zero free blocks, one, two and so on; then with enough space. */
if (import.meta.main) {
  const { options, folder } = JSON.parse(process.argv[2] ?? '') as SmallDiskTask
  const report: SmallDiskReport = { outcomes: {}, wrong: [], acknowledged: 0, present: 0 }
  const filler = openSync(join(folder, 'filler'), 'w')
  const freeBlocks = () => Number(statfsSync(folder).bavail)
  const leaveFree = (blocks: number) => {
    ftruncateSync(filler, 0)
    for (let left = freeBlocks() - blocks, at = 0; left > 0; left--, at += BLOCK_BYTES) {
      writeSync(filler, Buffer.alloc(BLOCK_BYTES, 1), 0, BLOCK_BYTES, at)
    }
  }

  await using store = await openStore(options, STORE_DEPS)
  const change = async (name: string) => {
    const before = await store.revision()
    const made = store.change(CONTEXT, async (tx) => {
      await tx.put('customers', customer(name))
      // Long enough for most lines to need a new block in the audit file.
      return {
        audit: { action: 'customer.add', subjects: [], after: { name, remark: '.'.repeat(3000) } },
        result: 'done',
      }
    })
    const outcome = await made.catch((error: unknown) => (isServiceError(error) ? error.code : String(error)))
    report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1
    if (outcome === 'done') report.acknowledged += 1
    const moved = (await store.revision()) - before
    if (moved !== (outcome === 'done' ? 1 : 0)) report.wrong.push(`${outcome}, but the revision changed by ${moved}`)
  }

  await change('roomy')
  for (let round = 0; round < ROUNDS; round++) {
    leaveFree(round % 20)
    await change(`tight-${round}`)
    await store
      .addUsage([{ subscriptionId: 's', hour: 0, interface: 'rpc', calls: 1, units: 1, refused: 0 }], new Map())
      .catch((error: unknown) => {
        if (!isServiceError(error, 'disk-full')) report.wrong.push(`counting failed with ${String(error)}`)
      })
    report.wrong.push(...(await store.integrity()))
    for (const finding of (await verifyAudit(store)).findings) report.wrong.push(`line ${finding.line} ${finding.what}`)
  }
  ftruncateSync(filler, 0)
  closeSync(filler)
  await change('roomy again')
  const { findings, notes } = await verifyAudit(store)
  report.wrong.push(...findings.map(({ what }) => what), ...notes)
  report.present = (await store.list('customers')).length
  process.stdout.write(JSON.stringify(report))
}
