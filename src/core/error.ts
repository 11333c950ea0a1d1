import { isSecretName, maskSecret, redactText } from './redact.ts'

/** Context of an error: small, flat, printable. */
export type ErrorFields = Readonly<Record<string, string | number | bigint | boolean | null | undefined>>

export type ServiceErrorOptions = {
  fields?: ErrorFields
  /** How to fix it, as a sentence or a command. */
  fix?: string
  cause?: unknown
}

/**
 * Every error that Sluice throws on purpose. `code` is stable and listed in the contract; servers turn it into a status, the
 * command line into an exit code. Message, fix and fields are masked in the constructor, so that printing the error never
 * shows a secret.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: string
  readonly fields: ErrorFields
  readonly fix: string | undefined

  constructor(code: string, message: string, options: ServiceErrorOptions = {}) {
    super(redactText(message), options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.fields = maskFields(options.fields ?? {})
    this.fix = options.fix === undefined ? undefined : redactText(options.fix)
  }

  override toString(): string {
    return `${this.code}: ${this.message}`
  }

  toJSON(): { code: string; message: string; fix?: string; fields?: ErrorFields } {
    return {
      code: this.code,
      message: this.message,
      ...(this.fix === undefined ? {} : { fix: this.fix }),
      ...(Object.keys(this.fields).length === 0 ? {} : { fields: this.fields }),
    }
  }
}

export function isServiceError(error: unknown, code?: string): error is ServiceError {
  return error instanceof ServiceError && (code === undefined || error.code === code)
}

/** The message of any thrown value, masked, on one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  return redactText(text.replaceAll(/\s+/g, ' '))
}

function maskFields(fields: ErrorFields): ErrorFields {
  const masked: Record<string, ErrorFields[string]> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value !== 'string') masked[name] = value
    else masked[name] = isSecretName(name) ? maskSecret(value) : redactText(value)
  }
  return masked
}
