import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Sealed, unseal } from '../../../access/backup/sealed.ts'
import type { BackupExtra, ExtraKind } from '../../../access/backup/summary.ts'
import type { SharedKeyRow } from '../../../access/store/tables.ts'
import type { Clock } from '../../../core/clock.ts'
import { ServiceError } from '../../../core/error.ts'
import type { Random } from '../../../core/random.ts'
import type { SqlDatabase } from '../../../platform/db/sql.ts'
import { openNumberFile } from '../../../platform/files/number.ts'
import { checkSecretFile } from '../../../platform/files/state-folder.ts'
import { type CountedTips, isCountedTip, listCountedTips } from '../../../sender/tips/counted-tips.ts'
import { isTipDay, listTipDays, type TipDay } from '../../../sender/tips/days.ts'
import { LEDGER_FILE, openLedgerToRead } from '../../../sender/tips/ledger-file.ts'
import { type DelayRow, type DeliveryRow, openReportStore } from '../../../shreds/report/store.ts'
import { REPORT_FILE } from '../services/shreds.ts'

/** What a backup has beside the rows of the access store: secret keys, and the content of the state folder that cannot be made again. */
export type SecretKeys = {
  readonly files: readonly KeyFile[]
  readonly shared: readonly SharedKeyRow[]
}

/** A file of `keys/`. */
type KeyFile = { readonly name: string; readonly text: string }

export const SEQ_FILE = ['execution', 'seq'] as const
export const TIPS_FILE = ['sender', LEDGER_FILE] as const
const KEY_FILES_MAX = 256
const KEY_FILE_BYTES_MAX = 4096

export type ContentDeps = { readonly clock: Clock; readonly random: Random }

/** Whether the state folder has key files. */
export function hasKeyFiles(stateDir: string): boolean {
  const folder = join(stateDir, 'keys')
  return existsSync(folder) && readdirSync(folder).some(isKeyName)
}

/** The files of `keys/`, each checked to be private. */
export async function readKeyFiles(stateDir: string): Promise<KeyFile[]> {
  const folder = join(stateDir, 'keys')
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter(isKeyName).toSorted()
  if (names.length > KEY_FILES_MAX) {
    throw new ServiceError(
      'invalid-value',
      `${folder} has ${names.length} key files, a backup has at most ${KEY_FILES_MAX}`,
      {
        fix: `Move those that are not keys of Sluice out of ${folder}.`,
      },
    )
  }
  const files: KeyFile[] = []
  for (const name of names) {
    const path = join(folder, name)
    await checkSecretFile(path)
    if (statSync(path).size > KEY_FILE_BYTES_MAX) {
      throw new ServiceError(
        'secret-invalid',
        `${path} is larger than a key file: more than ${KEY_FILE_BYTES_MAX} bytes`,
        {
          fix: `Move it out of ${folder}.`,
        },
      )
    }
    files.push({ name, text: readFileSync(path, 'utf8') })
  }
  return files
}

/** A name without folders: a backup from elsewhere cannot write outside `keys/`. */
function isKeyName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name) && /\.json(\.before-restore-\w+)?$/.test(name)
}

/** The lines of a backup for the state folder. `seal` is undefined when the keys are left out, and called only if there are any. */
export async function* stateContent(
  stateDir: string,
  keys: SecretKeys,
  deps: ContentDeps & { readonly seal: ((plain: string) => Promise<Sealed>) | undefined },
): AsyncGenerator<BackupExtra> {
  if (deps.seal !== undefined && (keys.files.length > 0 || keys.shared.length > 0))
    yield { kind: 'sealed_keys', value: await deps.seal(JSON.stringify(keys)) }
  const seq = openNumberFile(join(stateDir, ...SEQ_FILE)).read()
  if (seq !== undefined) yield { kind: 'cursor', value: { name: SEQ_FILE.join('/'), value: seq } }
  const reports = join(stateDir, ...REPORT_FILE)
  if (existsSync(reports)) {
    await using store = await openReportStore(reports, { ...deps, create: false })
    for (const value of await store.list({})) yield { kind: 'shred_delivery', value }
    for (const value of await store.delays({ fromMs: 0 })) yield { kind: 'shred_delays', value }
  }
  await using tips = await openLedgerToRead(join(stateDir, TIPS_FILE[0]), deps)
  if (tips !== undefined) yield* tipContent(tips, deps.clock.nowMs())
}

async function* tipContent(tips: SqlDatabase, nowMs: number): AsyncGenerator<BackupExtra> {
  // Both are read of one state: a transaction is in the sums and among the counted ones, or in neither.
  const { days, counted } = await tips.read(async (view) => ({
    days: await listTipDays(view),
    counted: await listCountedTips(view, nowMs),
  }))
  for (const value of days) yield { kind: 'tip_day', value }
  if (counted === undefined) return
  for (const value of counted.recent) yield { kind: 'tip_recent', value }
  yield { kind: 'tip_counted', value: { ms: counted.countedMs } }
}

/** Decrypts the keys of a backup; undefined when it has none. */
export async function openSecretKeys(
  extras: readonly BackupExtra[],
  secretOf: () => Promise<Uint8Array>,
): Promise<SecretKeys | undefined> {
  const [sealed] = valuesOf(extras, 'sealed_keys')
  if (sealed === undefined) return undefined
  const plain = await unseal(sealed, await secretOf())
  if (plain === undefined) {
    throw new ServiceError('secret-invalid', 'the passphrase or key file does not open the keys of this backup', {
      fix: 'Nothing was changed. Give the passphrase or key file of the day of the backup, or restore without the keys: --without-keys',
    })
  }
  const keys = JSON.parse(plain) as SecretKeys
  if (!keys.files.every(({ name }) => isKeyName(name))) {
    throw new ServiceError('store-corrupt', 'the backup has a key file with a name that Sluice does not write', {
      fix: 'Nothing was changed. Use another backup.',
    })
  }
  return keys
}

/** The number to continue the execution stream with: above the one in the backup, and above those that were used after it. */
export function restoredSeq(extras: readonly BackupExtra[], nowMs: number): number | undefined {
  const cursors = valuesOf(extras, 'cursor') as { readonly name?: unknown; readonly value?: unknown }[]
  const found = cursors.find(({ name }) => name === SEQ_FILE.join('/'))?.value
  // A stream without a number starts with the clock in microseconds (`execution/stream/seq-counter.ts`).
  return Number.isSafeInteger(found) ? Math.max(found as number, Math.floor(nowMs * 1000)) : undefined
}

/** The delivery reports of a backup; undefined without any. There are delays without rows while nobody has a destination. */
export function restoredReports(
  extras: readonly BackupExtra[],
): { readonly rows: readonly DeliveryRow[]; readonly delays: readonly DelayRow[] } | undefined {
  const rows = valuesOf(extras, 'shred_delivery') as DeliveryRow[]
  const delays = valuesOf(extras, 'shred_delays') as DelayRow[]
  return rows.length + delays.length === 0 ? undefined : { rows, delays }
}

/** The tips of a backup, and which transactions they include: undefined in a backup of an earlier version. */
export function restoredTips(extras: readonly BackupExtra[]): {
  readonly days: readonly TipDay[]
  readonly counted: CountedTips | undefined
} {
  const days = valuesOf(extras, 'tip_day')
  const recent = valuesOf(extras, 'tip_recent')
  const [mark] = valuesOf(extras, 'tip_counted') as { readonly ms?: unknown }[]
  const countedMs = mark === undefined ? 0 : mark.ms
  if (days.every(isTipDay) && recent.every(isCountedTip) && isWhole(countedMs))
    return { days, counted: mark === undefined ? undefined : { countedMs, recent } }
  throw new ServiceError('store-corrupt', 'the backup has a line of tips that Sluice does not write', {
    fix: 'Nothing was changed. Use another backup.',
  })
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

function valuesOf(extras: readonly BackupExtra[], kind: ExtraKind): unknown[] {
  return extras.filter((extra) => extra.kind === kind).map(({ value }) => value)
}

/** Key files of the state folder that a restore would replace with another content. */
export async function findOtherKeys(stateDir: string, keys: SecretKeys | undefined): Promise<string[]> {
  const present = new Map((await readKeyFiles(stateDir)).map(({ name, text }) => [name, text]))
  return (keys?.files ?? [])
    .filter(({ name, text }) => present.has(name) && present.get(name) !== text)
    .map(({ name }) => join(stateDir, 'keys', basename(name)))
}
