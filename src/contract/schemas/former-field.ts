/** What the schema of a renamed member says of the former name that responses have beside it. */
export function formerNameOf(name: string): { readonly deprecated: true; readonly description: string } {
  return { deprecated: true, description: `Former name of ${name}, until 0.2.` }
}
