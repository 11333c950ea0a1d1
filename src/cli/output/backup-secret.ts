import { readFile, stat } from 'node:fs/promises'
import { messageOf, ServiceError } from '../../core/error.ts'
import { resolveSecret } from '../../platform/config/secret-ref.ts'
import { checkSecretFile } from '../../platform/files/state-folder.ts'
import type { CliContext, CommonFlags } from '../define.ts'

/** How the keys of a backup are encrypted. The secret itself is never an argument: other users see the arguments of a process. */
export type BackupSecretFlags = CommonFlags & {
  readonly passphraseFile?: string
  readonly passphraseEnv?: string
  readonly keyFile?: string
  readonly withoutKeys?: boolean
}

const PASSPHRASE_LENGTH_MIN = 12
const KEY_FILE_BYTES_MIN = 32
const KEY_FILE_BYTES_MAX = 64 * 1024

/** Refuses flags that contradict each other. */
export function checkBackupSecretFlags(flags: BackupSecretFlags): void {
  const given = [
    flags.passphraseFile === undefined ? [] : ['--passphrase-file'],
    flags.passphraseEnv === undefined ? [] : ['--passphrase-env'],
    flags.keyFile === undefined ? [] : ['--key-file'],
    flags.withoutKeys === true ? ['--without-keys'] : [],
  ].flat()
  if (given.length < 2) return
  throw new ServiceError('usage', `${given.join(' and ')} exclude each other`, { fix: 'Give one of them.' })
}

/** Whether a flag names the secret, so that it can be read without asking. */
export function namesBackupSecret({ passphraseFile, passphraseEnv, keyFile }: BackupSecretFlags): boolean {
  return passphraseFile !== undefined || passphraseEnv !== undefined || keyFile !== undefined
}

/**
 * The secret that encrypts the keys of a backup: from a file, from the environment, or typed on the terminal. `isNew` asks twice and refuses one that is
 * easy to guess.
 */
export async function backupSecret(
  context: CliContext,
  flags: BackupSecretFlags,
  { isNew }: { readonly isNew: boolean },
): Promise<Uint8Array> {
  if (flags.keyFile !== undefined) return readKeyFile(flags.keyFile)
  const passphrase = await readPassphrase(context, flags, isNew)
  if (isNew && passphrase.length < PASSPHRASE_LENGTH_MIN) {
    throw new ServiceError('invalid-value', `a passphrase has at least ${PASSPHRASE_LENGTH_MIN} characters`, {
      fix: 'Use several random words, or a key file: (umask 077; openssl rand -hex 32 > backup.key), then --key-file backup.key',
    })
  }
  return Buffer.from(passphrase.normalize('NFC'))
}

async function readPassphrase(context: CliContext, flags: BackupSecretFlags, isNew: boolean): Promise<string> {
  const { env } = context.process
  if (flags.passphraseFile !== undefined) return (await resolveSecret(`file:${flags.passphraseFile}`, { env })).reveal()
  if (flags.passphraseEnv !== undefined) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(flags.passphraseEnv)) {
      // Not quoted: it may be the passphrase itself.
      throw new ServiceError('invalid-value', '--passphrase-env takes the name of an environment variable', {
        fix: 'Put the passphrase into a variable and give its name, such as --passphrase-env BACKUP_PASSPHRASE',
      })
    }
    return (await resolveSecret(`env:${flags.passphraseEnv}`, { env })).reveal()
  }
  const { stdin, stderr } = context.process
  if (stdin.isTTY !== true || stderr.isTTY !== true) throw needsSecret(isNew)
  const first = await ask(context, isNew ? 'Passphrase that encrypts the keys' : 'Passphrase of the backup')
  if (isNew && first.length >= PASSPHRASE_LENGTH_MIN && (await ask(context, 'The same again')) !== first)
    throw new ServiceError('invalid-value', 'the two passphrases differ', { fix: 'Run the command again.' })
  return first
}

async function ask(context: CliContext, message: string): Promise<string> {
  const { isCancel, password } = await import('@clack/prompts')
  const typed = await password({ message, output: context.process.stderr })
  if (isCancel(typed)) throw new ServiceError('usage', 'cancelled, nothing written', { fix: 'Run the command again.' })
  return typed ?? ''
}

async function readKeyFile(path: string): Promise<Uint8Array> {
  await checkSecretFile(path)
  const { size } = await stat(path)
  if (size < KEY_FILE_BYTES_MIN || size > KEY_FILE_BYTES_MAX) {
    throw new ServiceError(
      'secret-invalid',
      `${path} has ${size} bytes: a key file has ${KEY_FILE_BYTES_MIN} to ${KEY_FILE_BYTES_MAX} random bytes`,
      { fix: '(umask 077; openssl rand -hex 32 > backup.key)   # a passphrase goes to --passphrase-file' },
    )
  }
  return readFile(path).catch((error: unknown) => {
    throw new ServiceError('secret-invalid', `${path} cannot be read: ${messageOf(error)}`, { cause: error })
  })
}

function needsSecret(isNew: boolean): ServiceError {
  return isNew
    ? new ServiceError('usage', 'the state folder has secret keys, which a backup contains only encrypted', {
        fix: 'Add --key-file FILE or --passphrase-file FILE, run it on a terminal to be asked, or leave the keys out with --without-keys. Without its keys a backup does not bring back the tip wallets.',
      })
    : new ServiceError('usage', 'the backup has encrypted keys', {
        fix: 'Add the --key-file FILE or --passphrase-file FILE it was made with, run it on a terminal to be asked, or restore without the keys: --without-keys',
      })
}
