package basefile

// CheckLayout is for the tests outside the package.
var CheckLayout = checkLayout
