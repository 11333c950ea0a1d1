import { readFile, stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { inspect } from 'node:util'
import { messageOf, ServiceError } from '../../core/error.ts'
import { checkSecretFile } from '../files/state-folder.ts'

/** A secret in memory. Printing it in any way shows that it is one; only `reveal` gives the text. */
export class Secret {
  readonly #text: string
  constructor(text: string) {
    this.#text = text
  }
  reveal(): string {
    return this.#text
  }
  toString(): string {
    return '[secret]'
  }
  toJSON(): string {
    return '[secret]'
  }
  [inspect.custom](): string {
    return '[secret]'
  }
}

/** Said wherever a reference is wanted and something else was given. */
export const SECRET_REF_RULE =
  'secrets are given by reference: "file:PATH" (mode 0600) or "env:NAME"; a literal secret is not accepted'

const SECRET_BYTES_MAX = 64 * 1024

/** Whether the text is a reference to a secret rather than a secret. */
export function isSecretRef(text: string): boolean {
  return /^file:[^\0]+$/.test(text) || /^env:[A-Za-z_][A-Za-z0-9_]*$/.test(text)
}

export type SecretSources = {
  env: Readonly<Record<string, string | undefined>>
  /** Where relative paths begin: the folder of the config file. */
  folder?: string
}

/** Reads what the reference points to. Called when the secret is needed, so that no config value ever holds one. */
export async function resolveSecret(reference: string, sources: SecretSources): Promise<Secret> {
  // The text itself stays out of the error: it may be the secret.
  if (!isSecretRef(reference)) throw invalid('the value is not a reference', SECRET_REF_RULE)
  return reference.startsWith('env:')
    ? fromEnvironment(reference.slice(4), sources.env)
    : fromFile(reference.slice(5), sources.folder)
}

function fromEnvironment(name: string, env: SecretSources['env']): Secret {
  const text = env[name]
  if (text === undefined || text === '') {
    throw invalid(`environment variable ${name} is not set or empty`, `Set ${name} for the service user.`)
  }
  return new Secret(text)
}

async function fromFile(given: string, folder: string | undefined): Promise<Secret> {
  const path = isAbsolute(given) ? given : resolve(folder ?? '.', given)
  await checkSecretFile(path)
  const { size } = await stat(path)
  if (size > SECRET_BYTES_MAX) throw invalid(`${path} is larger than ${SECRET_BYTES_MAX} bytes`, 'Name the right file.')
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw invalid(`${path} cannot be read: ${messageOf(error)}`, 'Check its owner and mode.', error)
  })
  // Editors and `echo` end a file with a line break that is no part of the secret.
  const secret = text.replace(/\r?\n$/, '')
  if (secret === '') throw invalid(`${path} is empty`, 'Write the secret into it.')
  return new Secret(secret)
}

function invalid(message: string, fix: string, cause?: unknown): ServiceError {
  return new ServiceError('secret-invalid', message, { fix, cause })
}
