import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Calendar } from '../../../src/access/quota/calendar.ts'
import { openStore } from '../../../src/access/store/open.ts'
import { startUsage } from '../../../src/access/usage/service.ts'
import { openUsageSpool } from '../../../src/access/usage/spool.ts'
import { STORE_DEPS } from '../store/engines.ts'

/** The outcome, printed as JSON. */
export type UsageOnSmallDiskReport = {
  codeWhenFull: string | undefined
  spoolFailing: string | null
  spooledRows: number
  foundRows: number
  countedUnits: number
  bookedUnits: number
}

const SUBSCRIPTIONS = 300
const BLOCK = Buffer.alloc(4096, 1)

/** Counts usage while the disk is full, stops, and starts again with free space. Its argument is a folder on a small disk. */
if (import.meta.main) {
  const folder = process.argv[2] ?? ''
  const options = {
    location: { engine: 'sqlite', file: join(folder, 'access.db') },
    audit: { file: join(folder, 'audit.log'), mirror: 'this machine', toolVersion: '1.2.3' },
    check: 'full',
  } as const
  const { clock, log, random } = STORE_DEPS
  await using store = await openStore(options, STORE_DEPS)
  const open = async () => {
    const stack = new AsyncDisposableStack()
    const spool = stack.use(await openUsageSpool(join(folder, 'usage-spool'), { log }))
    const usage = stack.use(startUsage({ store, calendar: new Calendar(clock), clock, log, random, spool }))
    return { usage, [Symbol.asyncDispose]: () => stack.disposeAsync() }
  }
  let countedUnits = 0
  const report: Partial<UsageOnSmallDiskReport> = {}
  const filler = openSync(join(folder, 'filler'), 'w')
  {
    await using first = await open()
    const count = (units: number) => {
      for (let at = 0; at < SUBSCRIPTIONS; at++) {
        first.usage.countAdmitted(first.usage.createMeter(`sub_${at}`, `tok_${at}`), 'rpc', units)
        countedUnits += units
      }
    }
    count(1)
    await first.usage.flush()
    fill(filler)
    count(10)
    await first.usage.flush()
    count(100)
    await first.usage.flush()
    const { failing, spoolFailing, spooledRows } = first.usage.state()
    Object.assign(report, { codeWhenFull: failing?.code, spoolFailing: spoolFailing ?? null, spooledRows })
  }
  ftruncateSync(filler, 0)
  closeSync(filler)
  await using next = await open()
  report.foundRows = next.usage.state().waitingRows
  await next.usage.flush()
  report.countedUnits = countedUnits
  report.bookedUnits = (await store.usage({})).reduce((sum, { units }) => sum + units, 0)
  process.stdout.write(JSON.stringify(report))
}

/** Writes blocks, then bytes, until no space is left. */
function fill(file: number): void {
  for (const piece of [BLOCK, BLOCK.subarray(0, 1)]) {
    try {
      for (let at = 0; at < 100_000; at++) if (writeSync(file, piece) < piece.length) break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}
