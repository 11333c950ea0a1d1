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
import { findReplaced, putStateContent } from '../../../../processes/compose/access/put-state-content.ts'
import { countLaterChanges, keepAside, putInPlace } from '../../../../processes/compose/access/restored-files.ts'
import { openSecretKeys } from '../../../../processes/compose/access/state-content.ts'
import { currentActor } from '../../../../processes/compose/process/deps.ts'
import type { CliContext } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import {
  type BackupSecretFlags,
  backupSecret,
  checkBackupSecretFlags,
  namesBackupSecret,
} from '../../../output/backup-secret.ts'
import { printFacts, printJson, write } from '../../../output/print.ts'
import { summaryFacts, summaryWire } from './backup.ts'

export type RestoreFlags = BackupSecretFlags & { readonly force?: boolean; readonly dryRun?: boolean }

export async function restore(this: CliContext, flags: RestoreFlags, file: string): Promise<void> {
  const { env } = this.process
  checkBackupSecretFlags(flags)
  const settings = await findSettings(this, flags)
  const location = await storeLocationOf(settings, env)
  const { extras, ...summary } = await checkBackup(file)
  // A dry run without a secret checks everything but the keys.
  const isAsked = flags.withoutKeys !== true && (flags.dryRun !== true || namesBackupSecret(flags))
  const keys = isAsked ? await openSecretKeys(extras, () => backupSecret(this, flags, { isNew: false })) : undefined
  const hasKeys = (summary.counts['sealed_keys'] ?? 0) > 0
  const restoredKeys = { hasKeys, names: keys?.files.map(({ name }) => name) }
  if (flags.dryRun === true) return report(this, flags, { file, summary, kept: [], later: 0, keys: restoredKeys })

  const state = await openStateFolder(settings.stateDir)
  using _alone = takeInstanceLock(state)
  await makePrivate(state.file('lock'))
  const content = { extras, keys }
  const hasStore = summary.header.store !== false
  const stores = hasStore ? storeFiles(location) : []
  refuseOverwrite([...stores, ...(await findReplaced(state, content))], flags)
  const stamp = new Date(systemClock.nowMs()).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const deps = { clock: systemClock, random: secureRandom, log: silentLogger, sharedKeys: keys?.shared ?? [] }
  const kept: string[] = []
  const putContent = async () => void kept.push(...(await putStateContent(state, content, { ...deps, stamp })))
  if (!hasStore) {
    await putContent()
    return report(this, flags, { file, summary, kept, later: 0, keys: restoredKeys })
  }
  if (location.engine === 'postgres') {
    // First, because it refuses a database that is not empty.
    await restoreBackup(file, location, deps)
    await putContent()
  } else {
    // The store comes last: until then a restore that was interrupted can be repeated.
    await putContent()
    const draft = `${location.file}.restored-${stamp}`
    await restoreBackup(file, { ...location, file: draft }, deps)
    kept.push(...(await putInPlace(draft, location.file, stamp)))
  }
  const auditFile = state.file('audit.log')
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
  report(this, flags, { file, summary, kept, later, keys: restoredKeys })
}

/** The file of the store, if it exists. */
function storeFiles(location: StoreLocation): string[] {
  if (location.engine !== 'sqlite') return []
  return existsSync(location.file) || existsSync(`${location.file}-wal`) ? [location.file] : []
}

function refuseOverwrite(files: readonly string[], flags: RestoreFlags): void {
  if (flags.force === true || files.length === 0) return
  throw new ServiceError('already-exists', `${files.join(', ')} already ${files.length === 1 ? 'exists' : 'exist'}`, {
    fix: 'Add --force to replace what exists; it is kept under another name.',
  })
}

type Restored = {
  readonly file: string
  readonly summary: BackupSummary
  readonly kept: readonly string[]
  readonly later: number
  readonly keys: RestoredKeys
}

type RestoredKeys = { readonly hasKeys: boolean; readonly names: readonly string[] | undefined }

function keysText({ hasKeys, names }: RestoredKeys, { header }: BackupSummary): string {
  if (!hasKeys) return 'none in this backup'
  if (names === undefined) return 'encrypted, not opened'
  return [...names, ...(header.store === false ? [] : ['those of the store'])].join(', ')
}

function report(context: CliContext, flags: RestoreFlags, { file, summary, kept, later, keys }: Restored): void {
  const isDry = flags.dryRun === true
  if (flags.json === true) {
    return printJson(context, {
      ...summaryWire(file, summary),
      restored: !isDry,
      keys: keys.names ?? [],
      kept,
      laterChanges: later,
    })
  }
  printFacts(context, [
    ...summaryFacts(summary),
    ['keys', keysText(keys, summary)],
    ...kept.map((path) => ['kept', path] as const),
  ])
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
      : `restored and checked; start with: ${summary.header.store === false ? 'the service of this state folder' : 'sluice serve'}`,
  )
}
