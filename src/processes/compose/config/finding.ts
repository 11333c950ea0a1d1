/** What one look found. A `bad` or `warn` finding says which command or edit mends it. */
export type Finding =
  | { readonly check: string; readonly level: 'ok'; readonly says: string }
  | { readonly check: string; readonly level: 'warn' | 'bad'; readonly says: string; readonly fix: string }

export const ok = (check: string, says: string): Finding => ({ check, level: 'ok', says })
export const warn = (check: string, says: string, fix: string): Finding => ({ check, level: 'warn', says, fix })
export const bad = (check: string, says: string, fix: string): Finding => ({ check, level: 'bad', says, fix })
