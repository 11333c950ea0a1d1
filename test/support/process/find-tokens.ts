import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse as parseToml } from 'smol-toml'

const RULES = join(import.meta.dirname, '../../../.gitleaks.toml')

/** Tokens in a text, found with the shipped secret scanner rule; the format's test vectors are excluded. */
export function findTokens(text: string): string[] {
  const { rules } = parseToml(readFileSync(RULES, 'utf8')) as {
    rules: { regex: string; allowlist: { regexes: string[] } }[]
  }
  return rules.flatMap(({ regex, allowlist }) =>
    [...text.matchAll(new RegExp(regex, 'g'))].map(String).filter((found) => !allowlist.regexes.includes(found)),
  )
}
