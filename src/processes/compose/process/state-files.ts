/** A file that Sluice writes into the state folder. */
type StateFile = {
  /** Relative to the state folder; `*` stands for any characters within one name. */
  readonly path: string
  readonly keep: 'backup' | 'made-again'
  readonly contents: string
  /** In which form the backup has it, or where it comes from after a loss. */
  readonly how: string
}

/** A file that cannot be made again, so `sluice backup` contains it. */
const backup = (path: string, contents: string, how: string): StateFile => ({ path, keep: 'backup', contents, how })
/** A file that is not in the backup. */
const madeAgain = (path: string, contents: string, how: string): StateFile => ({
  path,
  keep: 'made-again',
  contents,
  how,
})

/** Every file of the state folder. A test starts all services and compares the folder with this table; docs/operating.md has it for the operator. */
export const STATE_FILES: readonly StateFile[] = [
  backup(
    'access.db',
    'customers, subscriptions, token hashes, usage, audit chain, keys for tickets and challenges',
    'every row, the keys encrypted',
  ),
  madeAgain('access.db-*', 'changes not yet in access.db', 'the backup reads them'),
  backup('audit.log', 'copy of the audit chain', 'the chain of the store'),
  backup('keys/*.json', 'tip wallets, identity of the sender', 'encrypted'),
  backup('execution/seq', 'highest number of the execution stream', 'the number; a restore continues above it'),
  madeAgain('execution/last-event', 'time of the last execution event', 'the next event'),
  madeAgain('execution/blocks/*', 'blocks that JSON-RPC of the execution service serves', 'the source, for new blocks'),
  madeAgain(
    'execution/history/*/*',
    'the last hour of the execution service, as its page shows it',
    'the source, for new blocks',
  ),
  backup(
    'sender/tips.db',
    'tips per day, account and payer',
    'every row, and which transactions of the last quarter of an hour are counted',
  ),
  madeAgain('sender/tips.db-*', 'rows not yet in tips.db', 'the backup reads them'),
  madeAgain(
    'sender/*.before-restore-*',
    'tips that a restore replaced; receipts, where the backup does not list which tips are counted',
    'remove it when the restored state is good',
  ),
  madeAgain(
    'usage-spool.*',
    'usage that the store could not take',
    'it is in the store after the next start; start before a backup if `sluice status` reports waiting usage',
  ),
  madeAgain('notices.json', 'notices and their deliveries', 'what is the case then causes a notice again'),
  madeAgain('last-backup.json', 'when the last backup was made', 'the next backup'),
  madeAgain('last-stop.json', 'how the last process ended', 'the next stop'),
  backup('shreds/reports.db', 'delivery reports by hour', 'every row'),
  madeAgain('shreds/reports.db-*', 'rows not yet in reports.db', 'the backup reads them'),
  madeAgain('machine-id', 'name of this copy of the audit log', 'the next start'),
  madeAgain('sender/journal-*', 'receipts of the last ten minutes', 'the chain has the state of each signature'),
  madeAgain(
    'indexer/*',
    'tables of the embedded database',
    'a backfill, as far as the nodes have the blocks; account states from their next change on',
  ),
  madeAgain('ring/*', 'event ring of an EVM node or the simulated chain', 'the next start'),
  madeAgain('localnet/*', 'the embedded chain', 'the next start, as a new chain'),
  madeAgain('localnet/ledger/*', 'blocks of the embedded chain', 'the next start'),
  madeAgain('localnet/keys/*', 'keys of the embedded chain', 'the next start'),
  madeAgain('control.sock', 'control socket', 'the next start'),
  madeAgain('lock', 'lock of the running process', 'the next start'),
  madeAgain('lock-journal', 'lock of the running process', 'the next start'),
  madeAgain('lock.pid', 'number of the running process', 'the next start'),
  madeAgain('*.before-restore-*', 'what a restore replaced', 'remove it when the restored state is good'),
  madeAgain(
    'shreds/*.before-restore-*',
    'reports that a restore replaced',
    'remove it when the restored state is good',
  ),
  backup('keys/*.before-restore-*', 'tip wallets that a restore replaced', 'encrypted'),
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
