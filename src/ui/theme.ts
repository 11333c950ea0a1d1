export type Theme = 'auto' | 'dark' | 'light'

const KEY = 'sluice-theme'
const THEMES: readonly Theme[] = ['auto', 'dark', 'light']

export function readTheme(): Theme {
  const kept = readKept()
  return THEMES.find((theme) => theme === kept) ?? 'auto'
}

export function applyTheme(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}

export function keepTheme(theme: Theme): void {
  applyTheme(theme)
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // Without storage the theme lasts until the page is closed.
  }
}

export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'auto'
}

function readKept(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}
