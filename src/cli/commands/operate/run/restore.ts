import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { verifyAudit } from '../../../../access/audit/verify.ts'
import { checkBackup, restoreBackup } from '../../../../access/backup/restore.ts'
import type { BackupSummary } from '../../../../access/backup/summary.ts'
import type { StoreLocation } from '../../../../access/store/open.ts'
import { ServiceError } from '../../../../core/error.ts'
import { takeInstanceLock } from '../../../../platform/files/instance-lock.ts'
import { makePrivate, openStateFolder } from '../../../../platform/files/state-folder.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import { silentLogger } from '../../../../platform/telemetry/logger.ts'
import { openAccessStore, storeLocationOf } from '../../../../processes/compose/access/open-store.ts'
import { countLaterChanges, keepAside, putInPlace } from '../../../../processes/compose/access/restored-files.ts'
import { loadSettings } from '../../../../processes/compose/config/settings.ts'
import { currentActor } from '../../../../processes/compose/process/deps.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { printFacts, printJson, write } from '../../../output/print.ts'
import { summaryFacts, summaryWire } from './backup.ts'

export type RestoreFlags = CommonFlags & { readonly force?: boolean; readonly dryRun?: boolean }

export async function restore(this: CliContext, flags: RestoreFlags, file: string): Promise<void> {
  const { env } = this.process
  const settings = await loadSettings(this, flags)
  const location = await storeLocationOf(settings, env)
  const summary = await checkBackup(file)
  if (flags.dryRun === true) return report(this, flags, { file, summary, kept: [], later: 0 })

  const state = await openStateFolder(settings.stateDir)
  using _alone = takeInstanceLock(state)
  await makePrivate(state.file('lock'))
  refuseOverwrite(location, flags)
  const auditFile = state.file('audit.log')
  const stamp = new Date(systemClock.nowMs()).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const deps = { clock: systemClock, random: secureRandom, log: silentLogger }
  const kept: string[] = []
  if (location.engine === 'postgres') await restoreBackup(file, location, deps)
  else {
    const draft = `${location.file}.restored-${stamp}`
    await restoreBackup(file, { ...location, file: draft }, deps)
    kept.push(...(await putInPlace(draft, location.file, stamp)))
  }
  const later = await countLaterChanges(auditFile, summary.header.audit)
  kept.push(...(await keepAside(auditFile, stamp)))

  {
    await using store = await openAccessStore(settings, { env, check: 'full' })
    await store.change({ actor: currentActor(env), nowMs: systemClock.nowMs() }, async () => ({
      audit: { action: 'store.restore', subjects: [], after: { ...summaryWire(basename(file), summary) } },
      result: undefined,
    }))
    const [finding] = (await verifyAudit(store)).findings
    if (finding !== undefined)
      throw new ServiceError('audit-broken', `${finding.location} line ${finding.line} ${finding.what}`)
  }
  report(this, flags, { file, summary, kept, later })
}

function refuseOverwrite(location: StoreLocation, flags: RestoreFlags): void {
  if (location.engine === 'postgres' || flags.force === true) return
  if (!existsSync(location.file) && !existsSync(`${location.file}-wal`)) return
  throw new ServiceError('already-exists', `${location.file} already exists`, {
    fix: 'Add --force to replace it; the present store is kept under another name.',
  })
}

type Restored = {
  readonly file: string
  readonly summary: BackupSummary
  readonly kept: readonly string[]
  readonly later: number
}

function report(context: CliContext, flags: RestoreFlags, { file, summary, kept, later }: Restored): void {
  const isDry = flags.dryRun === true
  if (flags.json === true) {
    return printJson(context, { ...summaryWire(file, summary), restored: !isDry, kept, laterChanges: later })
  }
  printFacts(context, [...summaryFacts(summary), ...kept.map((path) => ['kept', path] as const)])
  if (later > 0) {
    write(
      context,
      `${later} changes were made after this backup; they are the last lines of the audit log that was kept`,
    )
  }
  write(
    context,
    isDry
      ? `dry run, nothing changed: ${file} is complete and can be restored`
      : 'restored and checked; start with: sluice serve',
  )
}
