/** The result of one check. A `bad` or `warn` finding has a fix: a command or an edit. */
export type Finding =
  | { readonly check: string; readonly level: 'ok'; readonly message: string }
  | { readonly check: string; readonly level: 'warn' | 'bad'; readonly message: string; readonly fix: string }

export const ok = (check: string, message: string): Finding => ({ check, level: 'ok', message })
export const warn = (check: string, message: string, fix: string): Finding => ({ check, level: 'warn', message, fix })
export const bad = (check: string, message: string, fix: string): Finding => ({ check, level: 'bad', message, fix })
