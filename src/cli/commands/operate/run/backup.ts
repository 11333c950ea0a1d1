import { existsSync } from 'node:fs'
import { checkBackup } from '../../../../access/backup/restore.ts'
import { seal } from '../../../../access/backup/sealed.ts'
import type { BackupSummary } from '../../../../access/backup/summary.ts'
import { messageOf } from '../../../../core/error.ts'
import { alreadyExists, createFileAtomic } from '../../../../platform/files/atomic.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import { runningProcesses } from '../../../../platform/process/running-processes.ts'
import { isWithoutStore, writeBackupWithoutStore } from '../../../../processes/compose/access/backup-without-store.ts'
import {
  hasKeyFiles,
  openSecretKeys,
  readKeyFiles,
  type SecretKeys,
  stateContent,
} from '../../../../processes/compose/access/state-content.ts'
import { recordBackup } from '../../../../processes/compose/process/last-backup.ts'
import { VERSION } from '../../../../processes/compose/process/version.ts'
import type { CliContext } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { type BackupSecretFlags, backupSecret, checkBackupSecretFlags } from '../../../output/backup-secret.ts'
import { printFacts, printJson, write } from '../../../output/print.ts'
import { openSession } from '../../../session.ts'

export async function backup(this: CliContext, flags: BackupSecretFlags, file: string): Promise<void> {
  checkBackupSecretFlags(flags)
  // Before a passphrase is asked for.
  if (existsSync(file)) throw alreadyExists(file)
  const settings = await findSettings(this, flags)
  const { stateDir } = settings
  await using session = isWithoutStore(settings) ? undefined : await openSession(this, flags, 'read', settings)
  const files = await readKeyFiles(stateDir)
  let secret: Uint8Array | undefined
  const secretOf = async () => (secret ??= await backupSecret(this, flags, { isNew: true }))
  const isWithKeys = flags.withoutKeys !== true
  // Asked for before the store is read: a person types slowly.
  if (isWithKeys && files.length > 0) await secretOf()
  let keys: SecretKeys = { files, shared: [] }
  const deps = { clock: systemClock, random: secureRandom }
  const facts = {
    madeAtMs: systemClock.nowMs(),
    version: VERSION,
    extras: (shared: SecretKeys['shared']) => {
      keys = { files, shared }
      return stateContent(stateDir, keys, {
        ...deps,
        seal: isWithKeys ? async (plain) => seal(plain, await secretOf(), deps) : undefined,
      })
    },
  }
  await createFileAtomic(file, (put) => session?.store.backup(put, facts) ?? writeBackupWithoutStore(put, facts))
  // A backup counts only if it can be read back, and its keys opened.
  const { extras, ...summary } = await checkBackup(file, ['sealed_keys'])
  const kept = isWithKeys ? await openSecretKeys(extras, secretOf) : undefined
  const names = kept?.files.map(({ name }) => name) ?? []
  await recordBackup(stateDir, facts.madeAtMs).catch((error: unknown) =>
    write(this, `the time of this backup could not be recorded for notices: ${messageOf(error)}`),
  )
  noteOtherKeys(this, stateDir)
  if (flags.json === true) return printJson(this, { ...summaryWire(file, summary), keys: names })
  printFacts(this, [...summaryFacts(summary), ['keys', keysText(isWithKeys, keys, names)]])
  write(this, `${file} written (mode 0600) and read back; restore it with: sluice restore ${file}${restoreFlag(flags)}`)
  if (kept !== undefined)
    write(this, 'keep the passphrase or key file elsewhere: without it the keys in this file are lost')
}

/** A backup has the keys of one state folder; units beside it, such as the standalone sender, have folders of their own. */
function noteOtherKeys(context: CliContext, stateDir: string): void {
  for (const { pid, state } of runningProcesses(context.process.env)) {
    if (state === stateDir || !hasKeyFiles(state)) continue
    write(
      context,
      `NOT in this file: the keys of process ${pid}; back them up as well: sluice backup FILE --state ${state}`,
    )
  }
}

/** The flag that names the same secret; on a terminal `restore` asks for it. */
function restoreFlag({ keyFile, passphraseFile, passphraseEnv }: BackupSecretFlags): string {
  if (keyFile !== undefined) return ` --key-file ${keyFile}`
  if (passphraseFile !== undefined) return ` --passphrase-file ${passphraseFile}`
  return passphraseEnv === undefined ? '' : ` --passphrase-env ${passphraseEnv}`
}

function keysText(isWithKeys: boolean, keys: SecretKeys, names: readonly string[]): string {
  if (keys.files.length === 0 && keys.shared.length === 0) return 'none in the state folder'
  if (!isWithKeys) return `LEFT OUT: ${keys.files.map(({ name }) => name).join(', ')}; keep a copy of the folder keys/`
  const ofStore = keys.shared.length === 0 ? [] : ['those of the store']
  return `${[...(names.length === 0 ? [] : [names.join(', ')]), ...ofStore].join(' and ')}, encrypted`
}

export function summaryWire(file: string, { header, counts, sha256 }: BackupSummary): object {
  return { file, ...header, counts, sha256 }
}

export function summaryFacts({ header, counts, sha256 }: BackupSummary): (readonly [string, string | number])[] {
  const count = (kind: string) => counts[kind] ?? 0
  const ofStore: [string, string | number][] = [
    ['revision', header.revision],
    [
      'customers',
      `${count('customers')} customers, ${count('subscriptions')} subscriptions, ${count('tokens')} token hashes, ${count('usage')} hours of usage`,
    ],
    ['audit', `${header.audit.seq} lines, chain complete`],
  ]
  return [
    ['made', `${header.made_at} by Sluice ${header.version}`],
    ...(header.store === false ? [['store', 'none in the state folder'] as const] : ofStore),
    ['tips', `${count('tip_day')} daily sums by account and payer`],
    ['reports', `${count('shred_delivery')} hours of shred delivery`],
    ['stream', count('cursor') === 0 ? 'no number of the execution stream' : 'number of the execution stream'],
    ['other', otherText(counts)],
    ['sha256', sha256],
  ]
}

/** Kinds of lines that the facts name; the keys have a fact of their own. */
const NAMED_KINDS: ReadonlySet<string> = new Set(
  'customers subscriptions tokens usage audit tip_day shred_delivery cursor sealed_keys'.split(' '),
)

/** Every other kind of the backup, so that nothing in it is left out. */
function otherText(counts: BackupSummary['counts']): string {
  const others = Object.entries(counts).filter(([kind]) => !NAMED_KINDS.has(kind))
  return others.length === 0 ? 'nothing' : others.map(([kind, count]) => `${count} ${kind}`).join(', ')
}
