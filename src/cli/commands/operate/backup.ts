import { argument, command, commonFlags, flag } from '../../define.ts'

const secretFlags = {
  keyFile: flag.text('File of 32 or more random bytes (mode 0600) that encrypts the keys', 'FILE'),
  passphraseFile: flag.text('File with the passphrase that encrypts the keys (mode 0600)', 'FILE'),
  passphraseEnv: flag.text('Environment variable with that passphrase', 'NAME'),
} as const

export const backupCommand = command({
  brief: 'Write everything that cannot be made again to a new file (mode 0600)',
  details:
    'Customers, subscriptions, usage, audit chain, delivery reports, and the keys of the tip wallets, which are encrypted with a key file or a passphrase. On a terminal it asks for the passphrase; elsewhere it refuses without one of the flags. Works while Sluice runs, with SQLite and PostgreSQL. The file is text; it holds hashes, but no tokens or passwords. The tables of the indexer are not in it. The command reads it back before it ends.',
  examples: ['sluice-backup.jsonl --key-file backup.key', 'customers-only.jsonl --without-keys'],
  flags: { ...secretFlags, withoutKeys: flag.switch('Leave the keys out'), ...commonFlags },
  args: [argument('FILE', 'The new file; an existing file is never replaced')],
  load: async () => (await import('./run/backup.ts')).backup,
})

export const restoreCommand = command({
  brief: 'Restore a backup: the access store to the configured database, keys and reports to the state folder',
  details:
    'Refused while Sluice runs on the state folder. An existing store, other keys and delivery reports are replaced only with --force, and kept under another name; a PostgreSQL database must be empty. The audit chain of the backup continues with a line that records the restore.',
  examples: ['yesterday.jsonl --dry-run', 'yesterday.jsonl --key-file backup.key --force'],
  flags: {
    ...secretFlags,
    withoutKeys: flag.switch('Do not restore the keys'),
    ...commonFlags,
    force: flag.switch('Replace what exists, which is kept under another name'),
    dryRun: flag.switch('Check the complete file, change nothing'),
  },
  args: [argument('FILE', 'A file made by sluice backup')],
  load: async () => (await import('./run/restore.ts')).restore,
})
