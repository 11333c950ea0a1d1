import { rootRoutes } from '../../../src/cli/application.ts'
import { examplesOf } from '../../../src/cli/define.ts'

export type CommandRoute = {
  /** The words after `sluice`. */
  readonly path: readonly string[]
  readonly brief: string
  readonly examples: readonly string[]
  readonly flags: ReadonlySet<string>
}

/** The used members of the command-line library's objects. */
type Target = {
  readonly brief: string
  readonly parameters?: { readonly flags?: Readonly<Record<string, unknown>> }
  getDefaultCommand?(): Target | undefined
  getAllEntries?(): readonly { name: Record<string, string>; target: Target }[]
}

/** Every command, found by walking the routes. One that runs without its last word is listed with and without it. */
export const COMMANDS: readonly CommandRoute[] = [...walk(rootRoutes as unknown as Target)]

function* walk(target: Target, path: string[] = []): Generator<CommandRoute> {
  if (target.getAllEntries === undefined) {
    const flags = Object.keys(target.parameters?.flags ?? {}).map((name) =>
      name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    )
    yield { path, brief: target.brief, examples: examplesOf(target), flags: new Set([...flags, 'help']) }
  } else {
    const byDefault = target.getDefaultCommand?.()
    if (byDefault) yield* walk(byDefault, path)
    for (const { name, target: inner } of target.getAllEntries())
      yield* walk(inner, [...path, name['convert-camel-to-kebab'] ?? ''])
  }
}

/** The commands in a Markdown text, in fences and in inline code: everything after `sluice`. */
export function commandsNamedIn(markdown: string): string[] {
  const whole = markdown.replaceAll(/\\\n\s*/g, ' ')
  return [
    ...whole.matchAll(/(?<=^|[\s`(])(?:[\w./]*\/)?sluice (?=[a-z])(?!sluice )([^`|;&>#)\n]*(?:\|[a-z-]+)*)/gm),
  ].map(([, words = '']) => words.trim())
}

/** The error in a documented command, if any. `show|pause` means both commands. */
export function faultOf(line: string): string | undefined {
  const [first = '', second = '', ...rest] = line.split(/\s+/)
  for (const name of second.split('|')) {
    const route =
      COMMANDS.find(({ path }) => path.length === 2 && path[0] === first && path[1] === name) ??
      COMMANDS.find(({ path }) => path.length === 1 && path[0] === first)
    if (route === undefined) return `there is no command: sluice ${first} ${name}`.trimEnd()
    for (const word of [second, ...rest].filter((each) => each.startsWith('--'))) {
      const flag = word.slice(2).replace(/[=.,].*/, '')
      if (!route.flags.has(flag) && !route.flags.has(flag.replace(/^no-/, '')))
        return `sluice ${route.path.join(' ')} has no --${flag}`
    }
  }
  return undefined
}
