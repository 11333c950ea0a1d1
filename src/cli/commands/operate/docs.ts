import { command, commonFlags, flag, optionalArgument } from '../../define.ts'

export const docsCommand = command({
  brief: 'Print a page of the shipped documentation, or list the pages',
  details: 'Pages are Markdown; those under openapi and asyncapi are machine-readable interface descriptions.',
  examples: ['', 'operating', 'openapi/execution'],
  flags: { path: flag.switch('Print the path of the file instead of its text'), ...commonFlags },
  args: [optionalArgument('NAME', 'Name of a page from the list')],
  load: async () => (await import('./run/docs.ts')).docs,
})
