import { type CommonFlags, command, commonFlags, flag, word, words } from '../../define.ts'

export type RestoreFlags = CommonFlags & { readonly force?: boolean; readonly dryRun?: boolean }

export const backupCommand = command<CommonFlags, [string]>({
  brief: 'Write customers, subscriptions, usage and the audit chain to a new file (mode 0600)',
  details:
    'Works while Sluice runs, and on either engine. The file is text, holds hashes but no token and no password, and is read again before the command ends.',
  examples: ['sluice-backup.jsonl'],
  parameters: {
    flags: commonFlags,
    positional: words(word('FILE', 'The new file; one that is there is never replaced')),
  },
  load: async () => (await import('./run/backup.ts')).backup,
})

export const restoreCommand = command<RestoreFlags, [string]>({
  brief: 'Make the access store of a backup, on the engine that the config names',
  details:
    'Refused while Sluice runs on the state folder. A store that is there is replaced only with --force, and is kept under another name; a PostgreSQL database has to be an empty one. The chain of the backup goes on with a line that says who restored it.',
  examples: ['yesterday.jsonl --dry-run', 'yesterday.jsonl --force'],
  parameters: {
    flags: {
      ...commonFlags,
      force: flag.switch('Put it in the place of the store that is there, which is kept'),
      dryRun: flag.switch('Check the whole file, change nothing'),
    },
    positional: words(word('FILE', 'A file made by sluice backup')),
  },
  load: async () => (await import('./run/restore.ts')).restore,
})
