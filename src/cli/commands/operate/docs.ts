import { type CommonFlags, command, commonFlags, flag, optionalWord, words } from '../../define.ts'

export type DocsFlags = CommonFlags & { readonly path?: boolean }

export const docsCommand = command<DocsFlags, [string | undefined]>({
  brief: 'Print a page of the documents that came with this Sluice, or list them',
  details: 'Pages are Markdown; those under openapi and asyncapi are descriptions of the interfaces for programs.',
  examples: ['', 'operating', 'openapi/execution'],
  parameters: {
    flags: { path: flag.switch('Print where the file is instead of its text'), ...commonFlags },
    positional: words(optionalWord('NAME', 'Name of a page, as listed')),
  },
  load: async () => (await import('./run/docs.ts')).docs,
})
