import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ServiceError } from '../../../core/error.ts'
import type { Random } from '../../../core/random.ts'
import { openKeyFile } from '../../../localnet/genesis/key-files.ts'
import { addressOf } from '../../../sender/accept/tip-terms.ts'

const TIP_KEYS = ['tip-1', 'tip-2', 'tip-3', 'tip-4', 'tip-5']

/** Addresses of the five keys under `keys/`, created with mode 0600 if missing. */
export async function openTipAccounts(keysDir: string, random: Random): Promise<string[]> {
  const accounts: string[] = []
  for (const name of TIP_KEYS) accounts.push(addressOf((await openKeyFile(keysDir, name, random)).publicKey))
  return accounts
}

/** Whether the keys exist; never creates them. */
export function hasTipKeys(keysDir: string): boolean {
  return TIP_KEYS.every((name) => existsSync(join(keysDir, `${name}.json`)))
}

/** The key whose stake the connections to leaders use. A configured file must exist. */
export function openIdentity(keysDir: string, file: string | undefined, random: Random) {
  if (file === undefined) return openKeyFile(keysDir, 'sender-identity', random)
  if (!existsSync(file) || !file.endsWith('.json')) {
    throw new ServiceError('secret-invalid', `the file ${file} of sender.quic.identity is not a keypair file`, {
      fields: { path: file },
      fix: 'Give a keypair file of solana-keygen, ending in .json, with mode 0600.',
    })
  }
  return openKeyFile(dirname(file), basename(file, '.json'), random)
}
