/** The label of a limit as the heading of its row: `Units per second`. The name of a method stays as it is. */
export function limitTitle(label: string): string {
  const [first = ''] = label.split(' ', 1)
  return first === first.toLowerCase() ? `${label.charAt(0).toUpperCase()}${label.slice(1)}` : label
}
