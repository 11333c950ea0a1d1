import { generateHelpTextForAllCommands } from '@stricli/core'
import { createApplication } from '../../src/cli/application.ts'
import { GENERATED } from './markdown.ts'

export function commandsPage(): string {
  const commands = generateHelpTextForAllCommands(
    createApplication([]) as unknown as Parameters<typeof generateHelpTextForAllCommands>[0],
  )
  return `${[
    '# Commands',
    GENERATED,
    'Standard output is data, standard error is for messages. Every command has `--json`; lists also have `-o table|wide|json|csv`. Exit codes are in [errors.md](errors.md). `sluice --remote URL COMMAND` runs a command over the [admin API](admin-api.md#remote-commands) of another machine.',
    ...commands.map(([route, help]) => `## ${route}\n\n\`\`\`text\n${help.trimEnd()}\n\`\`\``),
  ].join('\n\n')}\n`
}
