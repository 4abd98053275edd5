// The user's settings, as JSON: no welcome pages, no outside hosts, a terminal whose text can be
// read.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * The directories where another `consort` would be found before the one under test, which is where
 * `cargo install` puts it.
 */
const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/bin', '/usr/bin', '/bin', '/opt/homebrew/bin']
const another = places.some((place) => existsSync(join(place, 'consort')))

console.log(JSON.stringify({
  'workbench.colorTheme': 'Default Dark Modern',
  'workbench.preferredLightColorTheme': 'Default Light Modern', 'workbench.preferredDarkColorTheme': 'Default Dark Modern',
  'telemetry.telemetryLevel': 'off', 'workbench.startupEditor': 'none', 'workbench.tips.enabled': false,
  'security.workspace.trust.enabled': false, 'security.workspace.trust.startupPrompt': 'never', 'security.workspace.trust.banner': 'never', 'extensions.autoCheckUpdates': false, 'extensions.autoUpdate': false,
  'extensions.ignoreRecommendations': true, 'update.mode': 'none', 'chat.disableAIFeatures': true, 'git.enabled': false,
  'workbench.enableExperiments': false, 'workbench.secondarySideBar.defaultVisibility': 'hidden', 'editor.hover.delay': 100,
  'files.autoSave': 'off', 'files.hotExit': 'off', 'editor.minimap.enabled': false, 'terminal.integrated.gpuAcceleration': 'off',
  'workbench.layoutControl.enabled': false, 'window.commandCenter': false, 'consort.tests.runOnSave': true, 'consort.debug.on_error': 'report',
  ...(another ? { 'consort.server.path': '~/.cargo/bin/consort' } : {}),
}, null, 1))
