import type { AdminResult } from '../../client/admin-client.ts'

export type FieldSpec = {
  readonly name: string
  readonly label: string
  readonly hint?: string
  readonly kind?: 'text' | 'long-text' | 'date' | 'select' | 'checks' | 'check'
  readonly options?: readonly { readonly value: string; readonly label: string }[]
  /** Options that the process gives; of those in `options`, where they are given. */
  readonly source?: 'plans' | 'products'
  readonly value?: string
  readonly isRequired?: boolean
  readonly charactersMax?: number
  readonly placeholder?: string
}

/** What the fields contain; of several check boxes the values, separated by commas. */
export type FieldValues = Readonly<Record<string, string>>

/** A dialog for one change. It is the same for all changes: what it ends or makes, the fields, and one button that names the change. */
export type DialogSpec = {
  readonly title: string
  /** What the change means, before it is made. */
  readonly text?: string
  readonly fields?: readonly FieldSpec[]
  /** The text of the button. */
  readonly submit: string
  readonly isDestructive?: boolean
  /** A message where the fields are invalid; undefined where they can be sent. */
  readonly check?: (values: FieldValues) => string | undefined
  readonly perform: (values: FieldValues, key: string) => Promise<AdminResult<unknown>>
  readonly done: (value: unknown, values: FieldValues) => void
}
