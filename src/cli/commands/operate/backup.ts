import { argument, type CommonFlags, command, commonFlags, flag, positional } from '../../define.ts'
import type { RestoreFlags } from './run/restore.ts'

export const backupCommand = command<CommonFlags, [string]>({
  brief: 'Write customers, subscriptions, usage and the audit chain to a new file (mode 0600)',
  details:
    'Works while Sluice runs, with SQLite and PostgreSQL. The file is text; it holds hashes, but no tokens or passwords. The command reads it back before it ends.',
  examples: ['sluice-backup.jsonl'],
  parameters: {
    flags: commonFlags,
    positional: positional(argument('FILE', 'The new file; an existing file is never replaced')),
  },
  load: async () => (await import('./run/backup.ts')).backup,
})

export const restoreCommand = command<RestoreFlags, [string]>({
  brief: 'Restore the access store from a backup, to the configured database',
  details:
    'Refused while Sluice runs on the state folder. An existing store is replaced only with --force, and kept under another name; a PostgreSQL database must be empty. The audit chain of the backup continues with a line that records the restore.',
  examples: ['yesterday.jsonl --dry-run', 'yesterday.jsonl --force'],
  parameters: {
    flags: {
      ...commonFlags,
      force: flag.switch('Replace the existing store, which is kept under another name'),
      dryRun: flag.switch('Check the complete file, change nothing'),
    },
    positional: positional(argument('FILE', 'A file made by sluice backup')),
  },
  load: async () => (await import('./run/restore.ts')).restore,
})
