/** A file that Sluice writes into the state folder. */
type StateFile = {
  /** Relative to the state folder; `*` stands for any characters within one name. */
  readonly path: string
  /** `backup`: it cannot be made again, so `sluice backup` contains it. `made-again`: it is not in the backup. */
  readonly keep: 'backup' | 'made-again'
  readonly contents: string
  /** In which form the backup has it, or where it comes from after a loss. */
  readonly how: string
}

/** Every file of the state folder. A test starts all services and compares the folder with this table; docs/operating.md has it for the operator. */
export const STATE_FILES: readonly StateFile[] = [
  {
    path: 'access.db',
    keep: 'backup',
    contents: 'customers, subscriptions, token hashes, usage, audit chain, keys for tickets and challenges',
    how: 'every row, the keys encrypted',
  },
  { path: 'access.db-*', keep: 'made-again', contents: 'changes not yet in access.db', how: 'the backup reads them' },
  { path: 'audit.log', keep: 'backup', contents: 'copy of the audit chain', how: 'the chain of the store' },
  { path: 'keys/*.json', keep: 'backup', contents: 'tip wallets, identity of the sender', how: 'encrypted' },
  {
    path: 'execution/seq',
    keep: 'backup',
    contents: 'highest number of the execution stream',
    how: 'the number; a restore continues above it',
  },
  {
    path: 'execution/last-event',
    keep: 'made-again',
    contents: 'time of the last execution event',
    how: 'the next event',
  },
  {
    path: 'execution/blocks/*',
    keep: 'made-again',
    contents: 'blocks that JSON-RPC of the execution service serves',
    how: 'the source, for new blocks',
  },
  { path: 'sender/tips.db', keep: 'backup', contents: 'tips per day, account and payer', how: 'every row' },
  { path: 'sender/tips.db-*', keep: 'made-again', contents: 'rows not yet in tips.db', how: 'the backup reads them' },
  {
    path: 'sender/*.before-restore-*',
    keep: 'made-again',
    contents: 'tips that a restore replaced',
    how: 'remove it when the restored state is good',
  },
  {
    path: 'usage-spool.*',
    keep: 'made-again',
    contents: 'usage that the store could not take',
    how: 'it is in the store after the next start; start before a backup if `sluice status` reports waiting usage',
  },
  { path: 'last-stop.json', keep: 'made-again', contents: 'how the last process ended', how: 'the next stop' },
  { path: 'shreds/reports.db', keep: 'backup', contents: 'delivery reports by hour', how: 'every row' },
  {
    path: 'shreds/reports.db-*',
    keep: 'made-again',
    contents: 'rows not yet in reports.db',
    how: 'the backup reads them',
  },
  { path: 'machine-id', keep: 'made-again', contents: 'name of this copy of the audit log', how: 'the next start' },
  {
    path: 'sender/journal-*',
    keep: 'made-again',
    contents: 'receipts of the last ten minutes',
    how: 'the chain has the state of each signature',
  },
  {
    path: 'indexer/*',
    keep: 'made-again',
    contents: 'tables of the embedded database',
    how: 'sluice indexer backfill reads them from the chain',
  },
  {
    path: 'ring/*',
    keep: 'made-again',
    contents: 'event ring of an EVM node or the simulated chain',
    how: 'the next start',
  },
  { path: 'localnet/*', keep: 'made-again', contents: 'the embedded chain', how: 'the next start, as a new chain' },
  { path: 'localnet/ledger/*', keep: 'made-again', contents: 'blocks of the embedded chain', how: 'the next start' },
  { path: 'localnet/keys/*', keep: 'made-again', contents: 'keys of the embedded chain', how: 'the next start' },
  { path: 'control.sock', keep: 'made-again', contents: 'control socket', how: 'the next start' },
  { path: 'lock', keep: 'made-again', contents: 'lock of the running process', how: 'the next start' },
  { path: 'lock-journal', keep: 'made-again', contents: 'lock of the running process', how: 'the next start' },
  { path: 'lock.pid', keep: 'made-again', contents: 'number of the running process', how: 'the next start' },
  {
    path: '*.before-restore-*',
    keep: 'made-again',
    contents: 'what a restore replaced',
    how: 'remove it when the restored state is good',
  },
  {
    path: 'shreds/*.before-restore-*',
    keep: 'made-again',
    contents: 'reports that a restore replaced',
    how: 'remove it when the restored state is good',
  },
  {
    path: 'keys/*.before-restore-*',
    keep: 'backup',
    contents: 'tip wallets that a restore replaced',
    how: 'encrypted',
  },
]

/** The row of a file, by its path relative to the state folder. */
export function stateFileOf(path: string): StateFile | undefined {
  return STATE_FILES.find((file) => isMatch(path.split('/'), file.path.split('/')))
}

function isMatch(names: readonly string[], patterns: readonly string[]): boolean {
  return names.length === patterns.length && patterns.every((pattern, at) => isNameMatch(names[at] as string, pattern))
}

/** `*` matches any number of characters. */
function isNameMatch(name: string, pattern: string): boolean {
  const [first = '', ...parts] = pattern.split('*')
  const last = parts.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first)) return false
  let at = first.length
  for (const part of parts) {
    const found = name.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}
