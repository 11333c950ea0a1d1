import { createSigningKey, type SigningKey } from '../../solana/crypto/ed25519.ts'

/** The keys of the chain's own validator and faucet. */
export type ChainKeys = {
  readonly identity: SigningKey
  readonly vote: SigningKey
  readonly stake: SigningKey
  readonly faucet: SigningKey
}

export const KEY_NAMES = ['identity', 'vote', 'stake', 'faucet'] as const

/** Creates each key from the secret seed that `seedOf` returns for its name. */
export function createChainKeys(seedOf: (name: (typeof KEY_NAMES)[number]) => Uint8Array): ChainKeys {
  return {
    identity: createSigningKey(seedOf('identity')),
    vote: createSigningKey(seedOf('vote')),
    stake: createSigningKey(seedOf('stake')),
    faucet: createSigningKey(seedOf('faucet')),
  }
}

/** The secret seed of a key, to derive further keys from. */
export function secretOf(key: SigningKey): Uint8Array {
  return new Uint8Array(Buffer.from(key.privateKey.export({ format: 'jwk' }).d as string, 'base64url'))
}
