import { readFile, stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { inspect } from 'node:util'
import { messageOf, ServiceError } from '../../core/error.ts'
import { checkSecretFile } from '../files/state-folder.ts'

/** A secret in memory. Every way of printing it shows a placeholder; only `reveal` returns the text. */
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

/** The fix for a value that is not a reference. */
export const SECRET_REF_RULE =
  'secrets are given by reference: "file:PATH" (mode 0600) or "env:NAME"; a literal secret is not accepted'

const SECRET_BYTES_MAX = 64 * 1024

/** Whether the text is a reference to a secret rather than a secret. */
export function isSecretRef(text: string): boolean {
  return /^file:[^\0]+$/.test(text) || /^env:[A-Za-z_][A-Za-z0-9_]*$/.test(text)
}

export type SecretSources = {
  env: Readonly<Record<string, string | undefined>>
  /** The base of relative paths: the folder of the config file. */
  folder?: string
}

/** Reads the secret of a reference. Called when the secret is needed, so that no config value holds one. */
export async function resolveSecret(reference: string, sources: SecretSources): Promise<Secret> {
  // The error does not quote the text: it may be the secret.
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
  // Editors and `echo` add a line break that is not part of the secret.
  const secret = text.replace(/\r?\n$/, '')
  if (secret === '') throw invalid(`${path} is empty`, 'Write the secret into it.')
  return new Secret(secret)
}

function invalid(message: string, fix: string, cause?: unknown): ServiceError {
  return new ServiceError('secret-invalid', message, { fix, cause })
}
