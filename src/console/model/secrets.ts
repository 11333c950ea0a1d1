import type { SecretRecord } from '../client/wire.ts'

export type SecretFact = { readonly name: string; readonly value: string; readonly isSecret: boolean }

/** The secrets of a response, each with a name to copy it by. */
export function secretFacts(secret: SecretRecord): SecretFact[] {
  const username = secret.indexer?.username ?? secret.username
  const password = secret.indexer?.password ?? secret.password
  const facts: (readonly [string, string | undefined, boolean])[] = [
    ['token', secret.token, true],
    ['database user', username, false],
    ['database password', password, true],
  ]
  return facts.flatMap(([name, value, isSecret]) => (value === undefined ? [] : [{ name, value, isSecret }]))
}
